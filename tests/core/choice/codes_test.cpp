// The gradient of codes at the points near which they are chosen.
#include "core/choice/choice.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::codes_test {
namespace {

using Gradient = Var<double> (*)(Var<double>, Var<double>);

/// [R, d] the gradient at the points for the cotangent `g` of the codes.
Matrix at_points(Gradient of, const Matrix& point, const Matrix& code, const Matrix& g) {
  Tape<double> tape;
  const auto placed = place(tape, {point, code});
  const auto y = of(placed[0], placed[1]);
  for (std::size_t i = 0; i < g.size(); ++i) CHECK(y.value().data[i] == code.flat(i));
  tape.backward(y, MatrixView<const double>{g.data(), extent(g, 0), extent(g, 1)});
  auto result = g;
  const auto found = tape.gradient(placed[0]);
  std::copy_n(found.data, found.size(), result.begin());
  return result;
}

Matrix row(std::vector<double> x) {
  const Shape one_row{1, x.size()};
  return shaped<double>(one_row, std::move(x));
}

double dot(const Matrix& x, const Matrix& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x.flat(i) * y.flat(i);
  return sum;
}

}  // namespace

TEST_CASE("codes: a copied gradient is the codes' own") {
  const auto point = random_matrix(3, 4, 1), code = random_matrix(3, 4, 2), g = random_matrix(3, 4, 3);
  CHECK(at_points(copied_gradient<double>, point, code, g) == g);
}

TEST_CASE("codes: a rotated gradient keeps its angle with the code, its part outside the plane, and its scaled length") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto h = random_matrix(1, 5, 10 * seed), q = random_matrix(1, 5, 10 * seed + 1),
               g = random_matrix(1, 5, 10 * seed + 2);
    const auto back = at_points(rotated_gradient<double>, h, q, g);
    const double length = std::sqrt(dot(h, h)), other = std::sqrt(dot(q, q)), scale = other / length;
    CHECK(dot(back, h) / length == doctest::Approx(scale * dot(g, q) / other));
    CHECK(dot(back, back) == doctest::Approx(scale * scale * dot(g, g)));
    auto outside = g;  // less its parts in the plane of h and q
    const double hh = dot(h, h), hq = dot(h, q), qq = dot(q, q), determinant = hh * qq - hq * hq;
    const double a = (dot(g, h) * qq - dot(g, q) * hq) / determinant, b = (dot(g, q) * hh - dot(g, h) * hq) / determinant;
    for (std::size_t i = 0; i < 5; ++i) outside.flat(i) -= a * h.flat(i) + b * q.flat(i);
    CHECK(dot(back, outside) == doctest::Approx(scale * dot(outside, outside)));
  }
}

TEST_CASE("codes: a rotation is a factor where point and code have one direction, and is left out where none exists") {
  const auto g = row({0.3, -0.7});
  const auto doubled = at_points(rotated_gradient<double>, row({1, 2}), row({2, 4}), g);
  CHECK(doubled.flat(0) == doctest::Approx(0.6));
  CHECK(doubled.flat(1) == doctest::Approx(-1.4));
  for (const auto& [point, code] :
       {std::pair{row({0, 0}), row({1, 2})}, std::pair{row({1, 2}), row({0, 0})}, std::pair{row({1, 0}), row({-3, 0})}})
    CHECK(at_points(rotated_gradient<double>, point, code, g) == g);
}

TEST_CASE("codes: of an answer they are the handler's, those of its options, or their mixture") {
  Tape<double> tape;
  const auto table = place(tape, {shaped<double>({2, 3}, {1, 2, 3, 4, 5, 6})})[0];
  Choice<double> choice{{}, ChosenOptions{{1, 0}}};
  const auto of = [&] {
    const auto v = codes_of(choice, table).value();
    return std::vector<double>(v.data, v.data + v.size());
  };
  CHECK(of() == std::vector<double>{4, 5, 6, 1, 2, 3});
  choice.code = tape.constant(2, 3);
  CHECK(of() == std::vector<double>(6));
  const auto weights = place(tape, {row({0.5, 0.5})})[0];
  choice = {{}, Relaxed<double>{{}, weights}};
  CHECK(of() == std::vector<double>{2.5, 3.5, 4.5});
}

}  // namespace hardgrad::testing::codes_test
