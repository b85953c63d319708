// The tape: reuse, detachment, memory.
#include "core/autodiff/tape.hpp"

#include "core/autodiff/attention.hpp"
#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/recurrent_cells.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::tape_test {
namespace {

template <class T>
Parameter<T>& filled(ParameterSet<T>& set, const char* name, std::size_t rows, std::size_t cols, std::uint64_t seed) {
  auto& p = set.add(name, {rows, cols});
  const auto values = random_matrix(rows, cols, seed);
  p.value.storage().assign(values.begin(), values.end());
  return p;
}

/// The gradient of a small network with every kind of operation.
template <class T>
std::vector<T> network(Tape<T>& tape, ParameterSet<T>& set) {
  const auto p = [&](const char* name) { return tape.parameter(*set.find(name)); };
  const std::vector<int> index{0, 3, 1, 1, 2, 0}, example{0, 0, 0, 0, 0, 1}, label{1, -1, 0, 4, 2, 3};
  const std::vector<int> options{2, 1, 2, 2, 2, 2};
  auto x = gather_rows(p("table"), std::span<const int>(index));
  auto s = lstm_cell(linear(x, p("gates")), tape.constant(6, 3, T(0.2)));
  const Items items(2, 2);
  auto keys = slice_columns(p("table"), 0, 3);
  auto e = add(dot_scores(s.h, keys, std::span<const int>(example), items),
               additive_scores(s.c, keys, p("v"), std::span<const int>(example), items));
  auto log_p = log_softmax(e, std::span<const int>(options));
  auto z = mix(probabilities(log_p), keys, std::span<const int>(example), items);
  auto loss = linear_cross_entropy(tanh(z), p("out"), {}, std::span<const int>(label)).loss;
  auto total = add(sum(loss), sum(entropy(log_p), 0.3));
  tape.backward(total);
  std::vector<T> gradient(set.size());
  tape.add_gradient(set, std::span<T>(gradient));
  gradient.push_back(total.item());
  return gradient;
}

template <class T>
void fill(ParameterSet<T>& set) {
  filled(set, "table", 4, 5, 1);
  filled(set, "gates", 12, 5, 2);
  filled(set, "v", 1, 3, 3);
  filled(set, "out", 5, 3, 4);
}

}  // namespace

TEST_CASE_TEMPLATE("a cleared tape gives the same bits in the same memory", T, float, double) {
  ParameterSet<T> set;
  fill(set);
  Tape<T> tape;
  const auto first = network(tape, set);
  const auto blocks = tape.arena().system_allocations();
  const auto bytes = tape.arena().capacity();
  for (int i = 0; i < 5; ++i) {
    tape.clear();
    CHECK(network(tape, set) == first);
  }
  CHECK(tape.arena().system_allocations() == blocks);
  CHECK(tape.arena().capacity() == bytes);
  Tape<T> fresh;
  CHECK(network(fresh, set) == first);
}

TEST_CASE("the network's gradient is the gradient of its parameters") {
  ParameterSet<double> set;
  fill(set);
  Tape<double> tape;
  auto gradient = network(tape, set);
  for (auto& p : set)
    for (std::size_t i = 0; i < p.value.size(); i += 3) {
      double& x = p.value.flat(i);
      const double centre = x, h = 1e-5;
      x = centre + h;
      tape.clear();
      const double above = network(tape, set).back();
      x = centre - h;
      tape.clear();
      const double below = network(tape, set).back();
      x = centre;
      CHECK(gradient[p.offset + i] == doctest::Approx((above - below) / (2 * h)).epsilon(1e-6));
    }
}

TEST_CASE("detach: the value passes, the gradient does not") {
  Tape<double> tape;
  const auto x = place(tape, {Matrix({1, 1}, 3.0)})[0];
  auto y = multiply(tape.detach(square(x)), x);
  CHECK(y.item() == 27);
  tape.backward(y);
  CHECK(*tape.gradient(x).data == 9);
  CHECK_FALSE(tape.needs_gradient(multiply(tape.detach(x), tape.detach(x))));
}

TEST_CASE("an input used several times, and an unused one") {
  Tape<double> tape;
  const auto x = place(tape, {shaped<double>({1, 2}, {2, 5}), Matrix({1, 2}, 1.0)});
  auto y = sum(add(multiply(x[0], x[0]), add(x[0], affine(x[0], 3.0))));
  tape.backward(y);
  CHECK(tape.gradient(x[0]).data[0] == 8);
  CHECK(tape.gradient(x[0]).data[1] == 14);
  CHECK(tape.gradient(x[1]).data[0] == 0);
}

TEST_CASE("backward twice on one tape, from different places") {
  Tape<double> tape;
  const auto x = place(tape, {Matrix({1, 1}, 2.0)})[0];
  auto y = square(x), z = square(y);
  tape.backward(z);
  CHECK(*tape.gradient(x).data == 32);
  tape.backward(y, 3.0);
  CHECK(*tape.gradient(x).data == 12);
  tape.backward(z);
  CHECK(*tape.gradient(x).data == 32);
}

TEST_CASE("parameters: one leaf each, gradients in the set's order, of this set only, scaled") {
  ParameterSet<double> set, other;
  auto& a = filled(set, "a", 1, 2, 1);
  auto& b = filled(set, "b", 1, 2, 2);
  auto& c = filled(other, "c", 1, 2, 3);
  Tape<double> tape;
  CHECK(tape.parameter(a).id == tape.parameter(a).id);
  auto y = sum(multiply(add(tape.parameter(b), tape.parameter(c)), tape.parameter(b)));
  tape.backward(y);
  std::vector<double> gradient(4, 1);
  tape.add_gradient(set, std::span<double>(gradient), 2.0);
  CHECK(gradient[0] == 1);
  CHECK(gradient[2] == doctest::Approx(1 + 2 * (2 * b.value.flat(0) + c.value.flat(0))));
  CHECK_THROWS_AS(tape.add_gradient(other, std::span<double>(gradient)), Bug);
  CHECK_THROWS_AS(tape.backward(tape.parameter(a)), Bug);
}

TEST_CASE("backward_to_leaves: the same gradients in less memory, without those of intermediate values") {
  ParameterSet<double> set;
  auto& w = filled(set, "w", 8, 8, 1);
  const auto chain = [&](Tape<double>& tape, Var<double>& middle) {
    auto x = tape.parameter(w);
    for (int i = 0; i < 50; ++i) {
      x = square(affine(x, 0.9));
      if (i == 25) middle = x;
    }
    return sum(x);
  };
  Tape<double> kept, released;
  Var<double> a, b;
  auto full = chain(kept, a), lean = chain(released, b);
  std::vector<double> expected(64), got(64);
  for (int round = 0; round < 2; ++round) {  // the second round reuses memory released by the first
    kept.backward(full);
    released.backward_to_leaves(lean);
    std::fill(expected.begin(), expected.end(), 0.0);
    std::fill(got.begin(), got.end(), 0.0);
    kept.add_gradient(set, std::span<double>(expected));
    released.add_gradient(set, std::span<double>(got));
    CHECK(expected == got);
  }
  CHECK(released.arena().used() < kept.arena().used());
  CHECK_NOTHROW(kept.gradient(a));
  CHECK_THROWS_AS(released.gradient(b), Bug);
  CHECK_THROWS_AS(released.backward_to_leaves(b), Bug);
}

TEST_CASE("a gradient computed in the caller's memory is used by the tape, and not changed later") {
  ParameterSet<double> set, other;
  auto &w = filled(set, "w", 3, 3, 1), &b = filled(set, "b", 2, 3, 2);
  filled(set, "unused", 2, 2, 3);
  auto& elsewhere = filled(other, "elsewhere", 2, 3, 4);
  const auto loss = [&](Tape<double>& tape) {  // b gets its cotangent as a whole, and another one later
    auto base = tape.parameter(b), x = tape.parameter(elsewhere);
    auto y = add_linear(base, tanh(add_linear(x, base, tape.parameter(w))), tape.parameter(w));
    return sum(add(square(y), x));
  };
  Tape<double> kept, lean;
  std::vector<double> expected(set.size()), got(set.size(), 7.0), last(set.size(), 7.0);
  kept.backward_to_leaves(loss(kept));
  kept.add_gradient(set, std::span<double>(expected));
  for (int round = 0; round < 2; ++round) {
    lean.clear();
    const auto total = loss(lean);
    lean.backward_to_leaves(total, set, std::span<double>(got));
    CHECK(got == expected);
    CHECK(lean.arena().used() < kept.arena().used());
    CHECK(lean.gradient(lean.parameter(elsewhere))(1, 2) == kept.gradient(kept.parameter(elsewhere))(1, 2));
    CHECK_THROWS_AS(lean.gradient(lean.parameter(w)), Bug);
    CHECK_THROWS_AS(lean.add_gradient(set, std::span<double>(last)), Bug);
    // Another backward pass does not change the caller's memory.
    lean.backward_to_leaves(affine(total, 3.0), set, std::span<double>(last));
    CHECK(got == expected);
    CHECK(last[0] == doctest::Approx(3 * expected[0]));
  }
  CHECK_THROWS_AS(lean.backward_to_leaves(loss(lean), set, std::span<double>(got).first(3)), Bug);
}

TEST_CASE("a pass to inputs omits parameters, and a pass to parameters omits inputs, even if values depend on both") {
  ParameterSet<double> set;
  auto &w = filled(set, "w", 3, 3, 1), &v = filled(set, "v", 2, 3, 2);
  const auto x0 = random_matrix(2, 3, 3);
  Tape<double> tape;
  const auto x = tape.input({x0.data(), 2, 3});
  const auto of_parameters = tanh(linear(tape.parameter(v), tape.parameter(w)));
  const std::vector<Var<double>> both{of_parameters, square(x)};
  const std::vector<int> order{3, 0, 1, 2};
  const auto gathered = gather_rows(std::span<const Var<double>>(both), std::span<const int>(order));
  const auto y = linear(add(gathered, stack_rows(std::span<const Var<double>>(both))), tape.parameter(w));
  const auto total = sum(square(y));
  const auto numbers = [&](Var<double> of) {
    const auto g = tape.gradient(of);
    return std::vector<double>(g.data, g.data + g.size());
  };
  tape.backward(total);
  const auto of_x = numbers(x), of_middle = numbers(of_parameters);
  std::vector<double> expected(set.size()), got(set.size());
  tape.add_gradient(set, std::span<double>(expected));
  tape.backward_to_inputs(total);
  CHECK(numbers(x) == of_x);
  CHECK(numbers(of_parameters) == std::vector<double>(6));  // not computed
  CHECK(numbers(tape.parameter(w)) == std::vector<double>(9));
  CHECK(tape.needs_gradient(of_parameters));
  tape.backward(total);
  CHECK(numbers(of_parameters) == of_middle);
  tape.backward_to_leaves(total, set, std::span<double>(got));
  CHECK(got == expected);
  CHECK(numbers(x) == std::vector<double>(6));
}

TEST_CASE("shared values are made once, survive a rewind, and take the gradient of each run") {
  struct CachedSquare {
    int of;
    Var<double> value;
  };
  ParameterSet<double> set;
  auto& w = filled(set, "w", 1, 3, 1);
  int made = 0;
  const auto run = [&](Tape<double>& tape, int data, double factor) {
    const auto& x = tape.shared<CachedSquare>(
        &set, [&](const CachedSquare& known) { return known.of == data; },
        [&] {
          ++made;
          return CachedSquare{data, affine(square(tape.parameter(w)), double(data))};
        });
    tape.backward_to_leaves(sum(affine(square(x.value), factor)));
    std::vector<double> gradient(3);
    tape.add_gradient(set, std::span<double>(gradient));
    return gradient;
  };
  const auto alone = [&](int data, double factor) {
    Tape<double> tape;
    return run(tape, data, factor);
  };
  Tape<double> tape;
  const auto first = run(tape, 2, 1);
  const auto used = tape.arena().used();
  CHECK(made == 1);
  for (double factor : {3.0, 1.0, 7.0}) {
    tape.rewind();
    CHECK(run(tape, 2, factor) == alone(2, factor));
  }
  tape.rewind();
  CHECK(run(tape, 2, 1) == first);
  CHECK(tape.arena().used() == used);  // nothing accumulates
  made = 0;
  tape.rewind();
  CHECK(run(tape, 2, 1) == first);
  CHECK(made == 0);
  tape.rewind();
  CHECK(run(tape, 5, 1) == alone(5, 1));  // different data
  tape.clear();
  CHECK(run(tape, 2, 1) == first);
  tape.clear();  // a differentiated value comes first: after a rewind, shared values are made anew
  sum(square(tape.parameter(w)));
  made = 0;
  run(tape, 2, 1);
  run(tape, 2, 1);
  CHECK(made == 1);
  tape.rewind();
  CHECK(run(tape, 2, 1) == first);
  CHECK(made == 2);
}

}  // namespace hardgrad::testing::tape_test
