// The programmer: gradients, ragged tables, branching, relaxed and enumerated answers, results of programs, too few steps.
#include <doctest/doctest.h>

#include "core/models/parts/table_operations.hpp"
#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::programmer_test {
namespace {

namespace op {
enum : int { sum, count, difference, greater, lesser, both, either, assign, reset };
}

const Dimensions dimensions{{"vocabulary", 7}, {"table_columns", 3}, {"program_steps", 1}};

// A question with two numbers, answered by a number, on 3 x 2 cells; and one without numbers, answered by cells, on 2 x 3.
// `garbage` fills the padding.
Batch two_questions(double garbage = 0) {
  Batch batch;
  batch.id = {3, 4};
  const double g = garbage;
  const int w = garbage != 0 ? 6 : 0;
  batch.reals["table"] = shaped<double>({2, 3, 3}, {2, -1, g, 0.5, 3, g, -2, 1, g, 1, 4, -3, 2, -1, 0.5, g, -g, g});
  batch.reals["number"] = shaped<double>({2, 2}, {0, 2, g, g});
  batch.reals["answer"] = shaped<double>({2}, {4, 0});
  batch.reals["unit"] = shaped<double>({2}, {0.5, 1});
  batch.integers["question"] = shaped<int>({2, 5}, {1, 2, 3, 4, 2, 4, 5, 1, w, w});
  batch.integers["question_length"] = shaped<int>({2}, {5, 3});
  batch.integers["numbers"] = shaped<int>({2}, {2, 0});
  batch.integers["number_place"] = shaped<int>({2, 2}, {1, 4, w, w});
  batch.integers["table_rows"] = shaped<int>({2}, {3, 2});
  batch.integers["table_columns"] = shaped<int>({2}, {2, 3});
  batch.integers["column_name"] = shaped<int>({2, 3}, {5, 6, w, 6, 1, 5});
  batch.integers["asks_cells"] = shaped<int>({2}, {0, 1});
  batch.integers["wanted"] = shaped<int>({2, 3}, {0, 0, 0, 2, 0, 0});
  return batch;
}

const char* const spec = "programmer[steps=3,hidden=2,embedding=2,delta=2]";
// [step][row 2 + column]: (greater 1, greater 0, sum 1) and (lesser 2, or, assign 1).
const Options forced{{op::greater, 1, op::lesser, 2}, {op::greater, 0, op::either, 0}, {op::sum, 1, op::assign, 1}};

}  // namespace

TEST_CASE("programmer: gradients, padding and copies of rows") {
  for (const Options& options :
       {forced, Options{{op::count, 0, op::greater, 1}, {op::reset, 1, op::lesser, 0}, {op::difference, 1, op::both, 2}},
        Options{{op::lesser, 0, op::count, 0}, {op::greater, 1, op::reset, 0}, {op::both, 0, op::assign, 2}}})
    check_gradients({.spec = spec, .dimensions = dimensions, .batch = two_questions(), .forced = options, .columns = 2});
  check_rows({.spec = spec,
              .dimensions = dimensions,
              .batch = two_questions(),
              .forced = forced,
              .columns = 2,
              .padded = {two_questions(7)}});
  auto model = lively("programmer[steps=1,hidden=2,embedding=2]", dimensions);
  check_gradient("enumerated", *model, two_questions(), [] { return std::make_unique<EnumerateHandler<double>>(); });
}

TEST_CASE("programmer: two steps of nine operations on three columns are 729 leaves, and their sum is the expectation") {
  auto needs = dimensions;
  needs["program_steps"] = 2;
  const auto model = lively("programmer[steps=2,hidden=2,embedding=2]", needs);
  CHECK(model->structure().dependence() == "sequential");
  CHECK(lively("programmer[steps=1]", dimensions)->structure().dependence() == "joint cost");
  check_outcomes(*model, two_questions(), {18 * 18, 27 * 27}, 2);
}

TEST_CASE("programmer: the result of a program follows from its operations") {
  const auto model = lively(spec, dimensions);
  struct Case {
    Options program;  // of the first question only
    int said, cells;  // the answer in halves; the column, from 1, of the answered cells, if any
    std::vector<int> rows;
  };
  // Columns (2, 0.5, -2) and (-1, 3, 1).
  const std::vector<Case> cases = {{{{op::reset, 0}, {op::reset, 0}, {op::sum, 0}}, 1, 0, {}},
                                   {{{op::reset, 0}, {op::reset, 1}, {op::count, 0}}, 6, 0, {}},
                                   {{{op::sum, 1}, {op::reset, 1}, {op::sum, 1}}, 6, 0, {}},
                                   {{{op::sum, 0}, {op::sum, 0}, {op::sum, 0}}, 0, 0, {}},  // a sum marks no row
                                   {{{op::reset, 0}, {op::count, 1}, {op::difference, 0}}, -6, 0, {}},
                                   {{{op::reset, 0}, {op::reset, 1}, {op::assign, 1}}, 0, 2, {1, 1, 1}},
                                   {{{op::reset, 0}, {op::count, 1}, {op::assign, 1}}, 0, 2, {0, 0, 0}},
                                   {{{op::reset, 0}, {op::count, 1}, {op::either, 1}}, 0, 0, {}}};
  int tried = 0;
  for (const auto& [program, said, cells, rows] : cases) {
    ForcedHandler<double> handler(program);
    Tape<double> tape;
    Episode<double> episode(tape, handler, 1);
    model->run(two_questions().select({0}), episode);
    REQUIRE(episode.predictions().size() == 4);
    CHECK(episode.predictions()[0].label[0] == said);
    for (int i = 0; i < 3; ++i) CHECK(episode.predictions()[i + 1].label[0] == (cells > 0 && rows[i] ? cells : 0));
    ++tried;
  }
  CHECK(tried == 8);
}

TEST_CASE("programmer: fewer steps than the longest program are rejected, with a remedy") {
  auto needs = dimensions;
  needs["program_steps"] = 4;
  const auto make = [&](const char* text) { return make_model<double>(Spec::parse(text), needs, Key(1)); };
  CHECK_THROWS_WITH_AS(make("programmer[steps=2]"),
                       "programmer: the longest program has 4 steps, but steps is 2; give steps=4 or shorter programs",
                       UsageError);
  CHECK_NOTHROW(make("programmer[steps=4]"));
}

}  // namespace hardgrad::testing::programmer_test
