#include "tests/fuzz/targets.hpp"

#include <nlohmann/json.hpp>

#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "core/random/key.hpp"
#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/cell.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/storage/result_files.hpp"
#include "experiments/sweeps/cell_leases.hpp"
#include "experiments/sweeps/config.hpp"
#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/plan.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/loaders/pairs.hpp"
#include "experiments/tasks/loaders/questions.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/storage/sample.hpp"

namespace hardgrad::fuzz {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;
namespace {

// With the right checksum for the bytes before it, so that mutations reach the bytes that it protects.
void seal_plan(const std::string& path) {
  auto text = read_file(path);
  const std::string mark = ",\"checksum\":\"";
  const auto at = text.rfind(mark);
  if (at == std::string::npos) return;
  text.resize(at);
  std::ofstream(path, std::ios::binary) << text << mark << text_hash(text) << "\"}\n";
}

std::string gzipped(const std::string& bytes, const std::string& folder) {
  const auto path = folder + "/seed.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
  return read_file(path);
}

std::string npy(const std::string& shape, std::size_t numbers) {
  std::string head = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
  head.resize(117, ' ');
  head += '\n';
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + std::string(numbers * 4, '\1');
}

std::string idx(unsigned char count) {
  return std::string("\0\0\x08\x03\0\0\0", 7) + static_cast<char>(count) + std::string("\0\0\0\x02\0\0\0\x02", 8) +
         std::string(count * std::size_t{4}, '\x7f');
}

// Reads the file into a task, and then some of its examples.
auto task(const std::string& before, const std::string& after = "") {
  return [=](const std::string& path) {
    const auto made = make_task(Spec::parse(before + path + after), Key(1));
    for (auto split : {Split::train, Split::heldout, Split::test})
      if (made->size(split) > 0) made->batch(split, {0, static_cast<int>(made->size(split)) - 1});
  };
}

const std::string
    babi =
        "1 Mary moved to the hall.\n2 John took the ball there.\n3 Where is Mary?\thall\t1\n4 Where is the ball?\thall\t2\n1 A "
        "b.\n2 C?\td,e\t1\n",
    pairs = "0\ta dog runs\ta cat sleeps\n1\tthe man\ta man\n1\tone two\ttwo one\n0\tx\ty\n",
    csv = "year,Gold Medals,silver\n1996,1.25,4\n2000,-2,5\n2004,3e2,6\n2008,7,8\n",
    cloze = "http://a\n\n@entity7 met @entity3 in town\n\n@placeholder saw @entity3\n\n@entity7\n\n@entity7:A\n@entity3:B\n",
    sentences = "Ein Hund .\tA dog .\nEine Katze .\tA cat .\na b\tx y z\nc\td\n",
    captions = "0\tA dog runs.\n1\tTwo cats\n\n0\tA dog\n2\tthree\n",
    dictionary = ";;; x\nab AE1 B\nab(2) AH0 B\nba B AA1 # x\nc S IY1\n", bits = "0 1 1 0\n1 1 1 1\n0 0 0 1\n1 0 1 0\n",
    sweep =
        "name = \"a\"\nseed = 7\nprecision = \"double\"\n[grid]\ntask = \"bits\"\nmodel = [\"bits[bits=2]\"]\n"
        "estimator = [\"rloo[samples=2]\", \"arm\"]\nseed = [1, 2]\n\"train.steps\" = [1, 2]\n"
        "[[exclude]]\nestimator = \"arm\"\nseed = [1]\n[[override]]\nwhen = { estimator = \"rloo*\" }\n"
        "set = { train.learning_rate = 0.05 }\n[train]\nsteps = 200\n[measure]\nat = [\"start\", \"50%\", \"end\"]\n";

}  // namespace

std::vector<Target> targets(const std::string& folder) {
  for (const char* name : {"images", "amat", "questions/training", "questions/validation", "questions/test", "sweep/cells"})
    std::filesystem::create_directories(folder + "/" + name);
  const auto beside = [&](const std::string& name, const std::string& bytes) {
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
    return folder + "/" + name;
  };
  beside("images/t10k-images-idx3-ubyte", idx(2));
  for (const char* name : {"valid", "test"}) beside("amat/binarized_mnist_" + std::string(name) + ".amat", bits);
  for (const char* name : {"validation", "test"}) beside("questions/" + std::string(name) + "/a.question", cloze);
  const auto english = beside("english", "A dog .\nA cat .\nx\ny\n"), features = beside("features.npy", npy("3, 2, 4", 24)),
             spoken = beside("captions.txt", captions), heard = beside("heard.txt", babi);

  auto record = testing::sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
  write_merged(folder + "/result.h5", testing::sample_sweep(1));
  save_checkpoint(folder + "/checkpoint.h5", {});
  Plan plan;
  plan.name = "a", plan.hash = "0123456789abcdef", plan.config = sweep;
  plan.cells.resize(2);
  for (auto& cell : plan.cells) cell.axes = {{"task", "qa"}, {"model", "memory_reader"}, {"estimator", "rloo"}, {"seed", "1"}};
  const auto parent = [](const std::string& path) { return std::filesystem::path(path).parent_path().string(); };
  const auto spec = [](const char* kind) {
    return [kind](const std::string& path) { settings_json(kind, canonical_spec(kind, read_file(path))); };
  };
  const auto sound = [](const std::string& path) {
    if (const auto problems = check_file(path); !problems.empty()) throw InputError(problems.front());
  };
  // The intact plugin registers nothing, which is an error after loading. It counts as accepted.
  const auto plugin = [](const std::string& path) {
    try {
      load_plugin(path);
    } catch (const UsageError& error) {
      if (std::string_view(error.what()).find("registers nothing") == std::string_view::npos) throw;
    }
  };
  const std::vector<std::string> brackets = {"[",    "]", ",",    "=",           "samples",  "=1",
                                             "true", "-", "rloo", "[samples=2]", "baseline="};

  return {
      {"idx",
       "images/train-images-idx3-ubyte",
       {idx(3), idx(9)},
       {},
       [=](const std::string& p) { task("images[heldout=1,path=", "]")(parent(p)); }},
      {"idx, zipped",
       "images/train-images-idx3-ubyte.gz",
       {gzipped(idx(9), folder), gzipped(idx(200), folder)},
       {},
       [=](const std::string& p) { task("images[heldout=1,path=", "]")(parent(p)); }},
      {"amat",
       "amat/binarized_mnist_train.amat",
       {bits},
       {"0 ", "1 ", "\n"},
       [=](const std::string& p) { task("images[path=", "]")(parent(p)); }},
      {"text, zipped",
       "text.gz",
       {gzipped(babi, folder), gzipped(std::string(5000, '\n'), folder)},
       {},
       [](const std::string& p) { read_text(p); }},
      {"bAbI",
       "qa.txt",
       {babi},
       {"\t", "?", "1 ", ".\n", "\t1 2\n"},
       task("qa[heldout=0.2,path=", ",test_path=" + heard + "]")},
      {"tab pairs",
       "tatoeba.tsv",
       {sentences},
       {"\t", "\n", "."},
       task("translation[data=tatoeba,source_column=1,heldout=0.25,test=0.25,path=", "]")},
      {"parallel text",
       "german",
       {"Ein Hund .\nEine Katze .\nu\nv\n"},
       {"\n", " "},
       task("translation[data=text,heldout=0.25,test=0.25,path=", ",target_path=" + english + "]")},
      {"dictionary",
       "cmudict",
       {dictionary},
       {"(2)", " AA1", "\n", "#"},
       task("transduce[data=cmudict,heldout=0.25,test=0.25,path=", "]")},
      {"cloze",
       "questions/training/a.question",
       {cloze},
       {"@entity", "@placeholder", "\n\n", ":", "7"},
       [=](const std::string& p) {
         task("cloze[path=", "]")(folder + "/questions");
         (void)p;
       }},
      {"captions",
       "captions.tsv",
       {captions},
       {"\t", "0", "\n"},
       task("caption[heldout=0.3,test=0.3,features=" + features + ",path=", "]")},
      {"npy",
       "features2.npy",
       {npy("3, 2, 4", 24), npy("3, 8", 24)},
       {"'shape'", "(", ")", "'<f8'", "True", "L", ", "},
       task("caption[heldout=0.3,test=0.3,path=" + spoken + ",features=", "]")},
      {"tables",
       "table.csv",
       {csv, "a,b\n1,2\n3,4\n5,6\n"},
       {",", "\"", "\n", ".5", "e9"},
       task("tables[examples=20,heldout=2,test=2,max_rows=8,path=", "]")},
      {"sentence pairs", "pairs.tsv", {pairs}, {"\t", "\n", "1"}, task("pairs[heldout=0.25,test=0.25,path=", "]")},
      {"sweep",
       "sweep.toml",
       {sweep},
       {"[[override]]\n", "when = ", "{ ", " }", "[\"", "\"]", "train.", "= 1e300", "= []", "\n[grid]\n", "\"\"\""},
       [](const std::string& p) { read_config(p); }},
      {"estimator",
       "estimator.txt",
       {"rloo[samples=2]", "gumbel_softmax[temperature=0.5,samples=3]", "disarm[target=elbo,kl=sampled]"},
       brackets,
       spec("estimator")},
      {"model", "model.txt", {"bits[bits=4,function=norm,power=1.5]", "translator"}, brackets, spec("model")},
      {"task", "task.txt", {"qa[stories=20,path=a b]", "bits"}, brackets, spec("task")},
      {"plugin", "plugin.so", {read_file(HARDGRAD_FUZZ_PLUGIN)}, {"hardgrad-seal:"}, plugin},
      {"result", "result2.h5", {read_file(folder + "/result.h5")}, {}, sound},
      {"cells",
       "some.cells",
       {cell_bytes(record, 1), cell_bytes(record, 1) + cell_bytes(record, 2)},
       {"HARDGRAD-CELL "},
       sound},
      {"checkpoint",
       "checkpoint2.h5",
       {read_file(folder + "/checkpoint.h5")},
       {},
       [](const std::string& p) { load_checkpoint(p); }},
      {"plan",
       "sweep/plan.json",
       {frozen(plan)},
       {"{", "}", "[", "]", "\"", ":", "\"cells\"", "null"},
       [=](const std::string& p) {
         seal_plan(p);
         read_plan({parent(p)});
       }},
      {"journal",
       "sweep/journal.jsonl",
       {"{\"event\":\"end\",\"cell\":\"a\",\"status\":\"ok\",\"seconds\":1.5}\n"},
       {"{", "}", "\n", ":", "null", "\"seconds\""},
       [=](const std::string& p) { journal_seconds({parent(p)}); }},
      {"claim",
       "sweep/cells/a.claim",
       {"{\"process\":\"a.1.2\",\"pid\":12,\"host\":\"far\",\"claim\":\"x\"}"},
       {"{", "}", "null", "1e99", "."},
       [=](const std::string& p) { valid_leases(parent(p)); }},
  };
}

}  // namespace hardgrad::fuzz
