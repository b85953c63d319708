// The toy tasks, and tasks by name.
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::toys_test {
using namespace tasks;

TEST_CASE("all tasks are registered, complete, and constructed by name") {
  CHECK(Tasks::instance().names() ==
        std::vector<std::string>{"algorithm", "answers",   "bits",    "canvas",    "caption",    "cloze",   "countdown",
                                 "features",  "gaussians", "glimpse", "images",    "induction",  "letters", "not_gate",
                                 "pairs",     "parse",     "patches", "puzzle",    "qa",         "recall",  "reviews",
                                 "sequences", "subsets",   "tables",  "transduce", "translation"});
  for (const auto& [name, entry] : Tasks::instance().entries()) {
    CHECK_FALSE(entry.summary.empty());
    CHECK_FALSE(entry.data.empty());
    CHECK_FALSE(entry.default_model.empty());
    for (const auto& parameter : entry.parameters) CHECK_FALSE(parameter.help.empty());
  }
  CHECK_THROWS_WITH_AS(make_task(Spec::parse("bit"), Key(1)), "unknown task \"bit\" (did you mean \"bits\"?)", UsageError);
  CHECK_THROWS_AS(make_task(Spec::parse("bits[x=1]"), Key(1)), UsageError);
}

TEST_CASE("the toys have the same examples in every split") {
  const auto bits = make_task(Spec::parse("bits"), Key(1)), gate = make_task(Spec::parse("not_gate"), Key(1));
  for (auto split : {Split::train, Split::heldout, Split::test}) {
    CHECK(bits->size(split) == 1);
    CHECK(bits->batch(split, {0}).examples() == 1);
    CHECK(gate->size(split) == 2);
    const auto batch = gate->batch(split, {1, 0});
    CHECK(batch.numbers("x").storage() == std::vector<double>{1, 0});
    CHECK(batch.numbers("target").storage() == std::vector<double>{0, 1});
    CHECK(batch.id == std::vector<std::uint32_t>{1, 0});
  }
}

}  // namespace hardgrad::testing::toys_test
