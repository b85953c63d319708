// The captioner: gradients, captions of different lengths, the gate and the penalty, relaxed and enumerated answers.
#include <doctest/doctest.h>

#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::captioner_test {
namespace {

const Dimensions from_features{{"cells", 3},         {"features", 2}, {"target_vocabulary", 5},
                               {"target_length", 3}, {"bos", 1},      {"eos", 2}};
const Dimensions from_images{{"cells", 2},         {"height", 8}, {"width", 16}, {"target_vocabulary", 5},
                             {"target_length", 3}, {"bos", 1},    {"eos", 2}};

// `garbage` fills the padding of captions.
Batch three_pictures(bool images, int garbage = 0) {
  Batch batch;
  batch.id = {4, 5, 6};
  KeyedRandomness random(Key(9));
  Array<double> picture = zeros<double>(images ? std::vector<std::size_t>{3, 8, 16, 3} : std::vector<std::size_t>{3, 3, 2});
  for (std::uint32_t i = 0; i < picture.size(); ++i) picture.flat(i) = random.uniform({.index = i}) - (images ? 0 : 0.5);
  batch.reals[images ? "image" : "features"] = picture;
  batch.integers["target"] = shaped<int>({3, 3}, {3, 4, 2, 4, 2, garbage, 3, 3, 2});
  batch.integers["target_length"] = shaped<int>({3}, {3, 2, 3});
  return batch;
}

struct Case {
  std::string spec;
  bool images;
};
std::vector<Case> cases() {
  return {{"captioner[embedding=3,hidden=3]", false},
          {"captioner[embedding=3,hidden=3,gate=true]", false},
          {"captioner[embedding=2,hidden=3,gate=true,doubly_stochastic=0.7]", false},
          {"captioner[embedding=2,hidden=2,channels=2,features=3]", true}};
}
const Options forced{{1, 0, 1}, {0, 1, 0}, {1, 0, 1}};
const Options among_three{{2, 0, 1}, {0, 1, 2}, {1, 0, 2}};

}  // namespace

TEST_CASE("captioner: gradients, padding, copies of rows and all outcomes") {
  for (const auto& [spec, images] : cases())
    check_model({.spec = spec,
                 .dimensions = images ? from_images : from_features,
                 .batch = three_pictures(images),
                 .forced = images ? forced : among_three,
                 .padded = {three_pictures(images, 4)},
                 .dependence = "sequential",
                 .outcomes = images ? std::vector<double>{8, 4, 8} : std::vector<double>{27, 9, 27}});
}

TEST_CASE("captioner: the penalty is lambda sum_i (1 - sum_t alpha_ti)^2 of each caption, for any handler") {
  const auto plain = lively("captioner[embedding=2,hidden=3]", from_features);
  const auto penalised = lively("captioner[embedding=2,hidden=3,doubly_stochastic=0.7]", from_features);
  const auto batch = three_pictures(false);
  ForcedHandler<double> once(copied(among_three, 2)), again(copied(among_three, 2));
  const auto loss = losses(*plain, batch, once);
  Tape<double> tape;
  Episode<double> episode(tape, again, 3);
  penalised->run(batch, episode);
  std::vector<double> with(6);
  for (const auto& cost : episode.costs())
    for (std::size_t r = 0; r < 6; ++r) with[r] += cost.loss.value().data[r];
  for (std::size_t r = 0; r < 6; ++r) {
    double expected = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      double covered = 0;
      for (int t = 0; t < batch.ints("target_length").flat(r / 2); ++t)  // the first question has one row for each example
        covered += std::exp(episode.steps()[t].question.categories().log_p().value()(t == 0 ? r / 2 : r, i));
      expected += 0.7 * (1 - covered) * (1 - covered);
    }
    CHECK(expected > 0.005);
    CHECK(with[r] - loss[r] == doctest::Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("captioner: a cell sees only its pixels, and its position") {
  const auto model = lively("captioner[embedding=2,hidden=2,channels=2,features=3]", from_images);
  const auto batch = three_pictures(true).select({0});
  auto right = batch;  // the pixels of the left and the right cell swapped
  auto& image = right.reals.at("image").storage();
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8 * 3; ++j) std::swap(image[i * 48 + j], image[i * 48 + 24 + j]);
  auto& place = model->parameters().find("encoder.place.weight")->value;
  const auto look = [&](const Batch& picture, int cell) {
    ForcedHandler<double> handler({{cell}, {cell}, {cell}});
    return losses(*model, picture, handler)[0];
  };
  CHECK(look(batch, 0) != doctest::Approx(look(right, 1)).epsilon(1e-6));
  for (std::size_t d = 0; d < 3; ++d) row_of(place, 1)[d] = row_of(place, 0)[d];
  CHECK(look(batch, 0) == doctest::Approx(look(right, 1)).epsilon(1e-12));
  CHECK(look(batch, 0) != doctest::Approx(look(batch, 1)).epsilon(1e-6));
}

TEST_CASE("captioner: images that are not divisible into cells are rejected") {
  auto odd = from_images;
  odd["width"] = 12;
  CHECK_THROWS_AS(make_model<double>(Spec::parse("captioner"), odd, Key(1)), UsageError);
}

TEST_CASE("captioner: dropout depends on the example, and a batch without a key has none") {
  testing::check_dropout("captioner[embedding=8,hidden=3,gate=true,dropout=", from_features, three_pictures(false), among_three,
                         {"readout"});
}

}  // namespace hardgrad::testing::captioner_test
