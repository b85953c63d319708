// Answers averaged over samples, against each label's probability under each sample, run separately.
#include "experiments/training/predictions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/choice/handlers.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/support/error.hpp"
#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::averaged_answers_test {
using namespace training;

namespace {

constexpr int labels = 3;

/// 1/K sum_k p(y | z_k) of every first label y, from losses: the choices do not depend on the label.
std::vector<double> mean_probabilities(const Model<double>& model, const Batch& batch, int b, int samples, int places) {
  std::vector<double> p(labels);
  for (int y = 0; y < labels; ++y) {
    auto one = batch.select({b});
    auto& label = one.integers.at("label").storage();
    std::fill(label.begin(), label.end(), -1);
    label[0] = y;
    REQUIRE(static_cast<int>(label.size()) == places);
    for (int k = 0; k < samples; ++k) {
      KeyedRandomness random(Key(3));
      const std::vector<std::uint32_t> id{batch.id[b] * static_cast<std::uint32_t>(samples) + static_cast<std::uint32_t>(k)};
      SampleHandler<double> handler(1, random, id);
      p[y] += std::exp(-testing::losses(model, one, handler)[0]) / samples;
    }
  }
  return p;
}

Array<int> averaged(const Model<double>& model, const Batch& batch, int samples) {
  Tape<double> tape;
  KeyedRandomness random(Key(3));
  return averaged_answers(model, batch, samples, tape, random);
}

/// The two images with many ids, which have different draws.
Batch many_images() {
  std::vector<int> copies;
  for (int i = 0; i < 20; ++i) copies.insert(copies.end(), {0, 1});
  auto batch = testing::two_images().select(copies);
  for (std::size_t b = 0; b < batch.id.size(); ++b) batch.id[b] = static_cast<std::uint32_t>(50 + b);
  return batch;
}

}  // namespace

TEST_CASE("averaged answers are the labels of largest mean probability, with options and with numbers") {
  int differ = 0;  // from the answer of one sample
  for (const auto* policy : {"grid", "gaussian,scale=0.7"}) {
    CAPTURE(policy);
    const auto model =
        testing::lively(std::string("glimpse_reader[grid=3,patch=2,glimpses=2,features=6,hidden=6,policy=") + policy + "]",
                        testing::two_images_dimensions);
    const auto batch = many_images();
    const auto said = averaged(*model, batch, 4), one = averaged(*model, batch, 1);
    REQUIRE(said.shape() == std::vector<std::size_t>{40, 1});
    for (int b = 0; b < 40; ++b) {
      const auto p = mean_probabilities(*model, batch, b, 4, 1);
      CHECK(p[0] + p[1] + p[2] == doctest::Approx(1));
      CHECK(row_of(said, b)[0] == std::max_element(p.begin(), p.end()) - p.begin());
      differ += row_of(said, b)[0] != one(b, 0);
    }
    CHECK(averaged(*model, batch.select({5, 9}), 4)(1, 0) == row_of(said, 9)[0]);
  }
  CHECK(differ > 0);
}

TEST_CASE("averaged answers of several labels: an example ends with its last label") {
  auto dimensions = testing::two_images_dimensions;
  dimensions["labels_in_a_row"] = 3;
  auto batch = many_images();
  batch.integers["label"] = full<int>({40, 3}, 0);
  int ended = 0, went_on = 0;
  for (double last : {-2.0, -1.0, -0.5, 0.0, 0.5}) {  // bias of the last label
    const auto model = testing::lively("glimpse_reader[grid=3,patch=2,glimpses=1,features=6,hidden=6]", dimensions);
    for (auto& p : model->parameters())
      if (p.name == "classifier.bias") p.value.flat(2) = last;
    const auto said = averaged(*model, batch, 5);
    for (int b = 0; b < 40; ++b) {
      const auto p = mean_probabilities(*model, batch, b, 5, 3);
      const auto words = row_of(said, b);
      CHECK(words[0] == std::max_element(p.begin(), p.end()) - p.begin());
      for (std::size_t k = 1; k < words.size(); ++k) {
        const bool over = words[k - 1] < 0 || words[k - 1] == 2;
        CHECK((words[k] < 0) == over);
        (over ? ended : went_on) += 1;
      }
    }
  }
  CHECK(ended > 0);
  CHECK(went_on > 0);
}

TEST_CASE("answers other than labels cannot be averaged") {
  const auto model = testing::lively("ponderer[hidden=3,steps=2]", {{"puzzle_width", 2}, {"positions", 1}, {"labels", 2}});
  Batch batch;
  batch.id = {1};
  CHECK_THROWS_AS(averaged(*model, batch, 2), UsageError);
}

}  // namespace hardgrad::testing::averaged_answers_test
