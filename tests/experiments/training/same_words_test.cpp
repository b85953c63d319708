// The check of tasks that load no vocabulary.
#include <doctest/doctest.h>

#include "core/support/error.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad::testing::same_words_test {
using namespace measurement;
using namespace tasks;
using namespace training;

namespace {

/// Example i is word i.
class Words final : public Task {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {}
  Dimensions dimensions() const override { return {}; }
  std::size_t size(Split) const override { return words_.size(); }
  Batch batch(Split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.integers["said"] = shaped<int>({indices.size()}, indices);
    return batch;
  }
  std::string word(const std::string&, int number) const override { return words_.at(static_cast<std::size_t>(number)); }

 private:
  std::vector<std::string> words_;
};

}  // namespace

TEST_CASE("a number that means another word than in training is rejected") {
  const Words trained({"a", "b", "c"}), fewer({"a", "b"}), other({"a", "c"}), more({"a", "b", "c", "d"});
  const auto said = [&](const Words& task, int examples = 0) -> std::string {
    try {
      require_same_words(trained, task, {.examples = examples, .batch = 1}, "words");
      return "accepted";
    } catch (const InputError& error) {
      return error.what();
    }
  };
  CHECK(said(fewer) == "accepted");
  CHECK(said(other, 1) == "accepted");  // unused examples do not matter
  CHECK(said(other).find("number 1 of `said` is \"c\" here and \"b\" there") != std::string::npos);
  CHECK(said(more).find("number 3 of `said` is \"d\" here and \"nothing\" there") != std::string::npos);
}

}  // namespace hardgrad::testing::same_words_test
