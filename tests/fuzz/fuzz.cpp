// Mutated inputs for every reader of files and texts. Each is read, or rejected with one line. An input that crashes the
// reader, exceeds its time or memory, or triggers an internal error is kept in a file.
//
//   fuzz [--only NAME] [--count INPUTS] [--seed N] [--keep FOLDER]
//
// Each batch of inputs runs in a separate process. An input with a new error message joins the corpus, from which further
// inputs are made. As error paths have different messages, this is similar to a coverage measure.
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "tests/fuzz/mutation.hpp"
#include "tests/fuzz/targets.hpp"

namespace hardgrad::fuzz {
using namespace storage;
namespace {

constexpr int seconds = 20;               // of processor time for one input
constexpr long kilobytes = 600L * 1000;   // the maximum; HARDGRAD_INPUT_LIMIT is 1 MB
constexpr std::size_t longest = 1 << 17;  // bytes of a message: one line, which may quote the input
constexpr int found = 9;                  // exit status of a batch whose current input is a failure

struct Tally {
  long accepted = 0, refused = 0;
};

// Makes a new file each time, because some file systems wait for the disk when a file is overwritten.
void write(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << bytes;
  if (!out.flush()) std::abort();
}

// A message without the parts that depend on the input.
std::string skeleton(const std::string& message) {
  std::string words;
  bool quoted = false;
  for (char c : message) {
    if (c == '"') quoted = !quoted;
    if (!quoted && std::isalpha(static_cast<unsigned char>(c))) words += c;
  }
  return words;
}

// Empty if the input is read, the error message if it is rejected. Any other outcome ends the process.
std::string answer(const Target& target, const std::string& path) {
  try {
    target.read(path);
    return {};
  } catch (const Error& error) {
    const std::string words = error.what();
    if ((error.exit_status() == 2 || error.exit_status() == 3) && !words.empty() && words.size() < longest) return words;
    std::fprintf(stderr, "%s: says \"%s\" (%d)\n", target.name.c_str(), words.c_str(), error.exit_status());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: throws \"%s\"\n", target.name.c_str(), error.what());
  }
  std::_Exit(found);
}

[[noreturn]] void run_batch(const Target& target, const std::string& path, std::uint64_t seed, long count,
                            const std::string& report) {
  Mutator mutator(seed, target.words);
  auto corpus = target.seeds;
  std::set<std::string> heard;
  Tally tally;
  for (long i = 0; i < count; ++i) {
    const auto& base = corpus[mutator.below(corpus.size())];
    const auto input = i < static_cast<long>(target.seeds.size()) ? target.seeds[i]
                                                                  : mutator.mutate(base, corpus[mutator.below(corpus.size())]);
    write(path, input);
    const itimerval timer{{0, 0}, {seconds, 0}};
    setitimer(ITIMER_VIRTUAL, &timer, nullptr);
    const auto words = answer(target, path);
    ++(words.empty() ? tally.accepted : tally.refused);
    if (heard.insert(skeleton(words)).second && corpus.size() < 500) corpus.push_back(input);
  }
  std::ofstream(report) << tally.accepted << " " << tally.refused;
  std::_Exit(0);
}

// Runs the inputs of one target; false at a failure.
bool run(const Target& target, const std::string& folder, std::uint64_t seed, long count, const std::string& keep) {
  const auto path = folder + "/" + target.file, report = folder + "/report";
  Tally all;
  const long batch = std::max(1000L, count / 20);  // in long batches, inputs evolve from earlier ones
  for (long done = 0; done < count; done += batch) {
    const auto process = fork();
    if (process < 0) std::abort();
    const auto number = seed * 1000003 + static_cast<std::uint64_t>(done);
    if (process == 0) run_batch(target, path, number, std::min<long>(batch, count - done), report);
    int status = 0;
    rusage used{};
    if (wait4(process, &status, 0, &used) != process) std::abort();
    const bool large = !std::getenv("HARDGRAD_SANITIZE") && used.ru_maxrss > kilobytes;
    if (status != 0 || large) {
      const auto kept = keep + "/" + std::filesystem::path(target.file).filename().string();
      std::filesystem::copy_file(path, kept, std::filesystem::copy_options::overwrite_existing);
      std::printf("%s: batch %ld of seed %llu: %s %d, %ld kB: %s\n", target.name.c_str(), done / batch,
                  static_cast<unsigned long long>(seed), WIFSIGNALED(status) ? "signal" : "status",
                  WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), used.ru_maxrss, kept.c_str());
      return false;
    }
    Tally one;
    std::ifstream(report) >> one.accepted >> one.refused;
    all.accepted += one.accepted, all.refused += one.refused;
  }
  std::filesystem::remove(path);
  std::printf("%-16s %9ld read %9ld refused\n", target.name.c_str(), all.accepted, all.refused);
  std::fflush(stdout);
  // A target that accepts all inputs or none was not exercised.
  return all.accepted + all.refused == count && all.accepted > 0 &&
         (all.refused > 0 || target.name == "journal" || target.name == "claim");
}

}  // namespace
}  // namespace hardgrad::fuzz

int main(int count, char** words) {
  using namespace hardgrad::fuzz;
  std::string only, keep = std::filesystem::temp_directory_path();
  long inputs = 300;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string option = words[i], value = words[i + 1];
    if (option == "--only") only = value;
    if (option == "--count") inputs = std::atol(value.c_str());
    if (option == "--seed") seed = std::strtoull(value.c_str(), nullptr, 10);
    if (option == "--keep") keep = value;
  }
  setenv("HARDGRAD_INPUT_LIMIT", "1", 1);
  unsetenv("HARDGRAD_DATA");
  auto folder = (std::filesystem::temp_directory_path() / "hardgrad-fuzz-XXXXXX").string();
  if (!mkdtemp(folder.data())) return 2;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  bool well = true;
  int visited = 0;
  for (const auto& target : targets(folder)) {
    if (!only.empty() && target.name != only) continue;
    ++visited;
    well = run(target, folder, seed, inputs, keep) && well;
  }
  std::filesystem::remove_all(folder);
  std::printf("%d targets, %ld inputs each\n", visited, inputs);
  return visited > 0 && well ? 0 : 1;
}
