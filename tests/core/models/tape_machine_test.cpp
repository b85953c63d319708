// The tape machine: gradients, lengths, branching, relaxed and enumerated answers, the latest time to write, tapes that are too
// short.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::tape_machine_test {
namespace {

enum : int { stay, right, left };
enum : int { now, later };

const Dimensions dimensions{{"input_width", 2}, {"answer_width", 2}, {"steps", 4}, {"shown_steps", 2}};

// Two input vectors and two targets; one input vector and two targets. `garbage` fills the padding.
Batch two_sequences(double garbage = 0) {
  Batch batch;
  batch.id = {3, 4};
  const double g = garbage;
  const int a = g != 0 ? 1 : -1;
  batch.reals["input"] = shaped<double>({2, 4, 2}, {1, 0, 0.5, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, g, -g});
  batch.integers["answer"] = shaped<int>({2, 4, 2}, {-1, -1, -1, -1, 1, 0, 0, 1, -1, -1, 1, 1, 0, 1, a, a});
  batch.integers["length"] = shaped<int>({2}, {4, 3});
  return batch;
}

struct Case {
  std::string spec;
  Options forced;  // [step][row 3 + column]; finished rows, and rows without alternatives, take the first option
};
std::vector<Case> cases() {
  return {
      {"tape_machine[cells=3,width=2,hidden=3]",
       {{right, stay, later, left, right, later}, {left, right, now, right, left, now}, {stay, left, now, stay, stay, now}}},
      {"tape_machine[cells=4,width=2,hidden=3,time=1.5,input=forward]",
       {{right, stay, later, stay, right, now},
        {right, right, later, right, left, later},
        {stay, left, now, right, stay, now},
        {right, left, later, stay, stay, now},
        {stay, right, now, stay, stay, now}}},
      {"tape_machine[cells=3,width=2,hidden=3,controller=direct]",
       {{right, stay, later, left, right, later}, {left, right, now, right, left, now}, {stay, left, now, stay, stay, now}}}};
}

}  // namespace

TEST_CASE("tape_machine: gradients, padding and copies of rows") {
  for (const auto& [spec, forced] : cases())
    check_model({.spec = spec,
                 .dimensions = dimensions,
                 .batch = two_sequences(),
                 .forced = forced,
                 .columns = 3,
                 .padded = {two_sequences(7)},
                 .dependence = "sequential"});
}

TEST_CASE("tape_machine: every row writes every symbol once, in time, and the rows' probabilities sum to 1") {
  for (const auto& [spec, forced] : cases()) {
    CAPTURE(spec);
    const auto model = lively(spec, dimensions);
    Tape<double> tape;
    EnumerateHandler<double> handler;
    Episode<double> episode(tape, handler, 2);
    model->run(two_sequences(), episode);
    const auto rows = episode.predictions().back().rows;
    const auto log_p = episode.path_log_probability(rows).value();
    std::vector<double> mass(2);
    for (std::size_t r = 0; r < rows->size(); ++r) mass[rows->example[r]] += std::exp(log_p.data[r]);
    for (double m : mass) CHECK(m == doctest::Approx(1).epsilon(1e-12));
    CHECK(rows->size() < model->outcomes(two_sequences())[0] + model->outcomes(two_sequences())[1]);

    std::vector<int> bits(rows->size());  // written on the way to each row
    for (const auto& [at, label] : episode.predictions()) {
      for (std::size_t r = 0; r < rows->size(); ++r) {
        std::size_t k = r;
        for (const auto* from = rows.get(); from != at.get(); from = from->origin.get()) k = from->parent[k];
        bits[r] += label[k] >= 0;
      }
    }
    CHECK(std::all_of(bits.begin(), bits.end(), [](int said) { return said == 4; }));
  }
}

TEST_CASE("tape_machine: enumerated rows sum to the expectation over all paths") {
  const auto model = lively("tape_machine[cells=3,width=2,hidden=3]", dimensions);
  // The second example has three steps: the first has all options; the later ones depend on whether it wrote.
  const auto one = two_sequences().select({1});
  double total = 0, mass = 0;
  const auto visit = [&](const Options& path) {
    ForcedHandler<double> handler(path);
    Tape<double> tape;
    Episode<double> episode(tape, handler, 1);
    model->run(one, episode);
    double log_p = 0, loss = 0;
    for (std::size_t t = 0; t < episode.steps().size(); ++t) {
      const auto p = episode.steps()[t].question.categories().log_p().value();
      for (int d = 0; d < 3; ++d) log_p += p(d, path[t][d]);
    }
    for (const auto& cost : episode.costs()) loss += cost.loss.item();
    total += std::exp(log_p) * loss;
    mass += std::exp(log_p);
  };
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      for (int o = 0; o < 2; ++o)
        for (int k = 0; k < 3; ++k)
          for (int l = 0; l < 3; ++l)
            for (int w = 0; w < (o == now ? 2 : 1); ++w) visit({{i, j, o}, {k, l, w}});
  CHECK(mass == doctest::Approx(1).epsilon(1e-12));
  CHECK(expected_loss_by_rows(*model, one) == doctest::Approx(total).epsilon(1e-12));
}

TEST_CASE("tape_machine: a tape shorter than the longest sequence is rejected, with a remedy") {
  auto needs = dimensions;
  needs["shown_steps"] = 9;
  const auto make = [&](const char* spec) { return make_model<double>(Spec::parse(spec), needs, Key(1)); };
  CHECK_THROWS_WITH_AS(
      make("tape_machine[cells=8]"),
      "tape_machine: the longest sequence takes 9 cells of the input tape, but a tape has 8; give cells=9 or shorter sequences",
      UsageError);
  CHECK_NOTHROW(make("tape_machine[cells=9]"));
}

}  // namespace hardgrad::testing::tape_machine_test
