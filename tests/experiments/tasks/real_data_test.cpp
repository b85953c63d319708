// The real files below HARDGRAD_DATA: they are read, and have their known sizes.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "experiments/tasks/loaders/arrays.hpp"
#include "experiments/tasks/loaders/pairs.hpp"
#include "experiments/tasks/loaders/questions.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::real_data_test {
using namespace tasks;

namespace {

// The folder of the real files. Without it the test is skipped.
std::optional<std::string> data() {
  if (const char* folder = std::getenv("HARDGRAD_DATA"); folder && *folder) return folder;
  MESSAGE("SKIPPED: set HARDGRAD_DATA to a folder with mnist/, babi/en/, tatoeba/ and cmudict/");
  return {};
}
std::unique_ptr<Task> make(const std::string& spec) { return make_task(Spec::parse(spec), Key(1)); }

}  // namespace

TEST_CASE("MNIST holds 60,000 and 10,000 digits") {
  const auto folder = data();
  if (!folder) return;
  const auto task = make("glimpse[path=" + *folder + "/mnist]");
  CHECK(task->size(Split::train) == 55000);
  CHECK(task->size(Split::heldout) == 5000);
  CHECK(task->size(Split::test) == 10000);
  CHECK(task->dimensions() == Dimensions{{"height", 28}, {"width", 28}, {"classes", 10}});
  const auto batch = task->batch(Split::test, {0, 1, 2});
  CHECK(batch.ints("label").storage() == std::vector<int>{7, 2, 1});
  const auto cluttered = make("glimpse[canvas=60,clutter=4,path=" + *folder + "/mnist]");
  CHECK(cluttered->batch(Split::train, {0}).numbers("image").shape() == std::vector<std::size_t>{1, 60, 60});
}

TEST_CASE("Fashion-MNIST holds 60,000 and 10,000 pictures of ten kinds") {
  const std::string folder = "/usr/share/datasets/fashion-mnist";
  if (!std::filesystem::exists(folder)) {
    MESSAGE("SKIPPED: Debian's package dataset-fashion-mnist is not installed");
    return;
  }
  const auto task = make("glimpse[path=" + folder + "]");
  CHECK(task->size(Split::train) + task->size(Split::heldout) == 60000);
  CHECK(task->size(Split::test) == 10000);
  CHECK(task->dimensions() == Dimensions{{"height", 28}, {"width", 28}, {"classes", 10}});
  CHECK(task->batch(Split::test, {0, 1, 2, 3}).ints("label").storage() ==
        std::vector<int>{9, 2, 1, 1});  // boot, pullover, trousers
  const auto bits = make("images[path=" + folder + ",binarise=thresholded]")->batch(Split::test, {0}).numbers("image");
  CHECK(std::accumulate(bits.begin(), bits.end(), 0.0) > 100);
}

TEST_CASE("Tatoeba holds 169,197 pairs") {
  const auto folder = data();
  if (!folder) return;
  CHECK(read_tab_pairs(*folder + "/tatoeba/deu.txt.gz").size() == 169197);
  const auto task = make("translation[data=tatoeba,path=" + *folder + "/tatoeba/deu.txt.gz]");
  MESSAGE(task->provenance());
  CHECK(has(task->provenance(), "; 0 of the "));  // no held-out pair shares a side with training
  CHECK(task->dimensions().at("source_vocabulary") == 2000);
  CHECK(task->dimensions().at("target_length") == 11);
  const auto kept = task->size(Split::train) + task->size(Split::heldout) + task->size(Split::test);
  CHECK(kept > 100000);
  CHECK(static_cast<double>(task->size(Split::heldout)) / static_cast<double>(kept) == doctest::Approx(0.05).epsilon(0.1));
}

TEST_CASE("all 20 bAbI tasks hold 1,000 and 1,000 questions") {
  const auto folder = data();
  if (!folder) return;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder + "/babi/en")) {
    const auto path = entry.path().string();
    if (!path.ends_with("_train.txt")) continue;
    CAPTURE(path);
    ++files;
    const auto task = make("qa[path=" + path + "]");
    CHECK(task->size(Split::train) + task->size(Split::heldout) == 1000);
    CHECK(task->size(Split::heldout) > 20);
    CHECK(task->size(Split::test) == 1000);
    std::vector<int> all(1000);
    std::iota(all.begin(), all.end(), 0);
    const auto batch = task->batch(Split::test, all);
    for (std::size_t b = 0; b < 1000; ++b) {
      const auto support = row_of(batch.ints("support"), b);
      if (!testing::has(path, "qa3_")) CHECK(std::accumulate(support.begin(), support.end(), 0) >= 1);
    }
  }
  CHECK(files == 20);
  const auto qa1 = make("qa[path=" + *folder + "/babi/en/qa1_single-supporting-fact_train.txt]");
  CHECK(qa1->dimensions() ==
        Dimensions{{"vocabulary", 21}, {"answers", 6}, {"answer_word", 2}, {"sentences", 10}, {"words", 6}});
}

TEST_CASE("CMUdict holds 135,166 pronunciations") {
  const auto folder = data();
  if (!folder) return;
  const auto path = *folder + "/cmudict/cmudict.dict.gz";
  const auto words = read_cmudict(path);
  CHECK(words.size() == 135166);
  const auto task = make("transduce[data=cmudict,path=" + path + "]");
  MESSAGE(task->provenance());
  CHECK(has(task->provenance(), "; 0 of the "));  // no held-out pair shares a side with training
  CHECK(task->dimensions().at("target_vocabulary") == 4 + 39);
}

}  // namespace hardgrad::testing::real_data_test
