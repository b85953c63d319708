// The gradient check itself: wrong operations must fail it.
#include "tests/support/gradient_check.hpp"

#include "core/autodiff/elementwise.hpp"

namespace hardgrad::testing::gradient_check_test {
namespace {

/// y = a^2, with a rule `ga[i] = rule(g, a, i, n)` that may be wrong.
template <class T, class Rule>
Var<T> squared(Var<T> a, Rule rule) {
  auto y = a.tape->output(a.rows(), a.cols(), {a});
  const auto in = a.value();
  for (std::size_t i = 0; i < in.size(); ++i) a.tape->mutable_value(y).data[i] = in.data[i] * in.data[i];
  a.tape->on_backward({y}, [a, y, rule](Tape<T>& tape) {
    const T *g = tape.cotangent(y).data, *x = tape.value(a).data;
    const std::size_t n = tape.value(a).size();
    tape.sink(a).accumulate([=](std::size_t i) { return rule(g, x, i, n); });
  });
  return y;
}

}  // namespace

TEST_CASE("the gradient check accepts a right rule and rejects wrong ones") {
  const std::vector<Matrix> inputs{random_matrix(2, 3, 1)};
  const auto verdict = [&](auto rule) {
    return gradient_error([&](auto&, const auto& x) { return squared(x[0], rule); }, inputs);
  };
  CHECK(verdict([](auto g, auto a, std::size_t i, std::size_t) { return 2 * a[i] * g[i]; }) == "");
  CHECK(verdict([](auto g, auto a, std::size_t i, std::size_t) { return a[i] * g[i]; }) != "");
  CHECK(verdict([](auto g, auto a, std::size_t i, std::size_t) { return -2 * a[i] * g[i]; }) != "");
  // Right for every cotangent with equal entries: only an asymmetric cotangent detects the error.
  CHECK(verdict([](auto g, auto a, std::size_t i, std::size_t n) { return 2 * a[i] * g[n - 1 - i]; }) != "");
  CHECK(verdict([](auto, auto, std::size_t, std::size_t) { return std::nan(""); }) != "");
}

TEST_CASE("the precision check rejects a float result that differs from double") {
  const auto f = [](auto& tape, const auto& x) {
    using T = Number<decltype(tape)>;
    return affine(x[0], sizeof(T) == 4 ? T(1.001) : T(1));
  };
  CHECK(precision_error(f, {random_matrix(2, 3, 1)}) != "");
}

}  // namespace hardgrad::testing::gradient_check_test
