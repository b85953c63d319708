#include "core/nn/layers.hpp"

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::layer_norm_test {

TEST_CASE("layer normalisation starts with gain 1 and bias 0") {
  ParameterSet<double> set;
  const LayerNorm<double> norm(set, "norm", 4);
  std::vector<std::string> names;
  for (const auto& p : set) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"norm.gain", "norm.bias"});
  Tape<double> tape;
  const auto y = norm(place(tape, {random_matrix(3, 4, 1)})[0]).value();
  for (std::size_t r = 0; r < 3; ++r) {
    double mean = 0, square = 0;
    for (std::size_t j = 0; j < 4; ++j) mean += y(r, j) / 4, square += y(r, j) * y(r, j) / 4;
    CHECK(std::abs(mean) < 1e-14);
    CHECK(square == doctest::Approx(1).epsilon(1e-4));
  }
}

}  // namespace hardgrad::testing::layer_norm_test
