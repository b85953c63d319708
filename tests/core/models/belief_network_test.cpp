// Belief networks: gradients, branching, relaxed and enumerated answers, halves of images, and likelihoods that sum to one.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::belief_network_test {
namespace {

const Dimensions dimensions{{"height", 3}, {"width", 2}, {"levels", 2}};

Batch three_images() {
  Batch batch;
  batch.id = {4, 7, 9};
  batch.reals["image"] = shaped<double>({3, 3, 2}, {1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 0});
  return batch;
}

struct Case {
  std::string spec;
  Options forced;  // for three examples
  int columns, options, layers;
};
std::vector<Case> cases() {
  const Options bits{{1, 0, 0, 1, 1, 1}, {0, 1, 1, 0, 1, 1}}, trits{{2, 0, 1, 1, 0, 2}, {1, 2, 0, 0, 2, 1}};
  return {{"belief_network[units=2]", {bits[0]}, 2, 2, 1},
          {"belief_network[units=2,layers=2]", bits, 2, 2, 2},
          {"belief_network[units=2,layers=2,hidden_layers=2,hidden=3]", bits, 2, 2, 2},
          {"belief_network[units=2,layers=2,options=3]", trits, 2, 3, 2},
          {"belief_network[units=2,options=6]", {{5, 0, 1, 3, 0, 2}}, 2, 6, 1},  // hard categories are sums of columns
          {"belief_network[units=1,layers=2,options=6]", {{5, 0, 3}, {1, 4, 0}}, 1, 6, 2},
          {"belief_network[units=2,layers=2,conditional=true]", bits, 2, 2, 2},
          {"belief_network[units=2,options=3,hidden_layers=1,hidden=3,conditional=true]", {trits[0]}, 2, 3, 1}};
}

}  // namespace

TEST_CASE("belief_network: gradients, copies of rows and all outcomes") {
  for (const auto& c : cases())
    check_model({.spec = c.spec,
                 .dimensions = dimensions,
                 .batch = three_images(),
                 .forced = c.forced,
                 .columns = c.columns,
                 .dependence = c.layers == 1 ? "joint cost" : "sequential",
                 .outcomes = std::vector<double>(3, std::pow(c.options, c.layers * c.columns))});
}

TEST_CASE("belief_network: the likelihoods of all images sum to one, and those of all lower halves for every upper half") {
  for (const auto& c : cases()) {
    CAPTURE(c.spec);
    const auto model = lively(c.spec, dimensions);
    const std::size_t given = c.spec.find("conditional") == std::string::npos ? 0 : 2;
    std::vector<double> mass(1u << given);
    for (int image = 0; image < 64; ++image) {
      Batch batch;
      batch.id = {0};
      batch.reals["image"] = zeros<double>({1, 3, 2});
      for (int p = 0; p < 6; ++p) batch.reals["image"].flat(p) = image >> p & 1;
      Tape<double> tape;
      EnumerateHandler<double> handler;
      Episode<double> episode(tape, handler, 1);
      model->run(batch, episode);
      const auto& cost = episode.costs().back();
      const auto log_p = episode.path_log_probability(cost.rows).value(), loss = cost.loss.value();
      for (std::size_t r = 0; r < cost.rows->size(); ++r) mass[image % mass.size()] += std::exp(log_p.data[r] - loss.data[r]);
    }
    for (double m : mass) CHECK(m == doctest::Approx(1).epsilon(1e-12));
  }
}

TEST_CASE("belief_network: one row of pixels has no upper half") {
  CHECK_THROWS_AS(lively("belief_network[units=2,conditional=true]", {{"height", 1}, {"width", 6}, {"levels", 2}}), UsageError);
}

}  // namespace hardgrad::testing::belief_network_test
