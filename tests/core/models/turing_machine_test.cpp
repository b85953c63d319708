// The Turing machine: gradients, lengths, branching, relaxed and enumerated answers, and a memory that is too small.
#include <doctest/doctest.h>

#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::turing_machine_test {
namespace {

const Dimensions dimensions{{"input_width", 2}, {"answer_width", 2}, {"steps", 3}, {"vectors", 2}};

// Two sequences of three and two steps. `garbage` fills the steps beyond the end.
Batch two_sequences(double garbage = 0) {
  Batch batch;
  batch.id = {3, 4};
  const double g = garbage;
  batch.reals["input"] = shaped<double>({2, 3, 2}, {1, 0, 0, 1, 0, 0, 0.5, 1, 0, 0, g, -g});
  batch.integers["answer"] = shaped<int>({2, 3, 2}, {-1, -1, 1, 0, 0, 1, -1, -1, 1, 1, garbage != 0 ? 1 : -1, -1});
  batch.integers["length"] = shaped<int>({2}, {3, 2});
  return batch;
}

struct Case {
  std::string spec;
  int heads, cells;
  Options forced;  // [step][row H + h]
};
std::vector<Case> cases() {
  return {{"turing_machine[cells=3,width=2,hidden=3]", 2, 3, {{0, 1, 2, 0}, {1, 1, 0, 2}, {2, 0, 0, 0}}},
          {"turing_machine[cells=2,width=2,hidden=3,controller=feedforward]", 2, 2, {{0, 1, 1, 0}, {1, 1, 0, 1}, {1, 0, 0, 0}}},
          {"turing_machine[cells=2,width=2,hidden=3,reads=2,writes=2]",
           4,
           2,
           {{0, 1, 1, 0, 1, 1, 0, 0}, {1, 1, 0, 1, 0, 0, 1, 1}, {1, 0, 0, 0, 0, 0, 0, 0}}},
          {"turing_machine[cells=5,width=2,hidden=3,shifts=2]", 2, 5, {{0, 1, 4, 0}, {1, 3, 0, 2}, {2, 0, 0, 0}}}};
}

}  // namespace

TEST_CASE("turing_machine: gradients, padding, copies of rows and all outcomes") {
  for (const auto& [spec, heads, cells, forced] : cases())
    check_model({.spec = spec,
                 .dimensions = dimensions,
                 .batch = two_sequences(),
                 .forced = forced,
                 .columns = heads,
                 .padded = {two_sequences(7)},
                 .dependence = "sequential",
                 .outcomes = {std::pow(cells, 3 * heads), std::pow(cells, 2 * heads)}});
}

TEST_CASE("turing_machine: a hard writing head changes only reads of its cell") {
  const auto model = lively(cases()[0].spec, dimensions);
  // The reading head is in cell 2 at every step: writing to cell 0 or 1 has no effect, writing to cell 2 has.
  const auto loss = [&](int written) {
    ForcedHandler<double> handler(Options{{2, written}, {2, written}, {2, written}});
    return losses(*model, two_sequences().select({0}), handler)[0];
  };
  CHECK(loss(0) == doctest::Approx(loss(1)).epsilon(1e-14));
  CHECK(std::abs(loss(2) - loss(0)) > 1e-3);
}

TEST_CASE("turing_machine: a memory smaller than the longest sequence is rejected, with a remedy") {
  auto needs = dimensions;
  needs["vectors"] = 9;
  const auto make = [&](const char* spec) { return make_model<double>(Spec::parse(spec), needs, Key(1)); };
  CHECK_THROWS_WITH_AS(
      make("turing_machine[cells=8]"),
      "turing_machine: the longest sequence has 9 vectors to keep, but the memory has 8 cells; give cells=9 or "
      "shorter sequences",
      UsageError);
  CHECK_NOTHROW(make("turing_machine[cells=9]"));
}

}  // namespace hardgrad::testing::turing_machine_test
