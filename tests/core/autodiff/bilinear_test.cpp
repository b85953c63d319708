// Bilinear patches: against whole pixels and against the definition; the derivative in the place.
#include "core/autodiff/images.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::bilinear_test {
namespace {

Array<double> images() {
  Array<double> x = zeros<double>({2, 5, 7});
  for (std::size_t i = 0; i < x.size(); ++i)
    x.flat(i) = std::sin(1.7 * static_cast<double>(i)) + 0.1 * static_cast<double>(i % 11);
  return x;
}
// Some inside, one at the rim, one outside; no point is at a pixel's centre, where there is a kink.
Matrix places() { return shaped<double>({5, 2}, {0.13, -0.31, -0.77, 0.52, 0.95, 0.91, 0.02, 0.04, -1.7, 0.3}); }
const std::vector<int> shown = {0, 1, 1, 0, 1};

double pixel(const Array<double>& x, int image, int i, int j) {
  return i >= 0 && i < 5 && j >= 0 && j < 7 ? x(image, i, j) : 0;
}
/// The image at a point, in pixels: hat functions around every pixel's centre.
double at(const Array<double>& x, int image, double i, double j) {
  double sum = 0;
  for (int u = -2; u < 8; ++u)
    for (int v = -2; v < 10; ++v)
      sum += pixel(x, image, u, v) * std::max(0.0, 1 - std::abs(i - u)) * std::max(0.0, 1 - std::abs(j - v));
  return sum;
}

TEST_CASE("a patch is the average over its blocks of points interpolated between pixels") {
  const auto x = images();
  const auto where = places();
  Tape<double> tape;
  const int P = 3, S = 2;
  const auto y = bilinear_patches(x, std::span<const int>(shown), tape.input({where.data(), 5, 2}), P, S).value();
  REQUIRE(y.cols == S * P * P);
  for (int r = 0; r < 5; ++r)
    for (int s = 0; s < S; ++s)
      for (int i = 0; i < P; ++i)
        for (int j = 0; j < P; ++j) {
          const int block = 1 << s;
          double expected = 0;
          for (int u = 0; u < block; ++u)
            for (int v = 0; v < block; ++v)
              expected += at(x, shown[r], (where(r, 0) + 1) / 2 * 5 - P * block / 2.0 + i * block + u,
                             (where(r, 1) + 1) / 2 * 7 - P * block / 2.0 + j * block + v) /
                          (block * block);
          CHECK(y(r, (s * P + i) * P + j) == doctest::Approx(expected).epsilon(1e-12));
        }
}

TEST_CASE("at a pixel's centre a patch of one point is that pixel, and far outside it is zero") {
  const auto x = images();
  Tape<float> tape;
  const std::vector<float> where = {2 * 2.5f / 5 - 1, 2 * 3.5f / 7 - 1, 3e30f, 0};
  const std::vector<int> image = {1, 1};
  const auto y = bilinear_patches(x, std::span<const int>(image), tape.input({where.data(), 2, 2}), 1, 1).value();
  CHECK(y(0, 0) == doctest::Approx(pixel(x, 1, 2, 3)).epsilon(1e-5));
  CHECK(y(1, 0) == 0);
}

TEST_CASE("the derivative in the place agrees with central differences, and the check detects wrong derivatives") {
  const auto x = images();
  for (int scales : {1, 2}) {
    const auto f = [&](auto&, const auto& in) { return bilinear_patches(x, std::span<const int>(shown), in[0], 3, scales); };
    CHECK(gradient_error(f, {places()}) == "");
    // Rows and columns swapped: the same patches, but the derivative's axes are swapped.
    const auto swapped = [&](auto& tape, const auto& in) {
      const auto right = bilinear_patches(x, std::span<const int>(shown), tape.detach(in[0]), 3, scales);
      auto y = tape.output(right.rows(), right.cols(), {in[0]});
      std::copy_n(right.value().data, right.value().size(), tape.mutable_value(y).data);
      tape.on_backward({y}, [y, in = in[0]](auto& tape) {
        const auto g = tape.cotangent(y);
        tape.sink(in).accumulate([=](std::size_t i) { return g(i / 2, 1 - i % 2); });
      });
      return y;
    };
    CHECK(gradient_error(swapped, {places()}) != "");
  }
}

}  // namespace
}  // namespace hardgrad::testing::bilinear_test
