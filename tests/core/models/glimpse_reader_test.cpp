// The glimpse reader: gradients, branching, both ways to compute glimpses, relaxed and enumerated answers.
#include <doctest/doctest.h>

#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::glimpse_reader_test {
namespace {

const Dimensions dimensions = two_images_dimensions;
const Options forced{{3, 1}, {0, 2}};

std::vector<std::string> specs() {
  return {"glimpse_reader[grid=2,patch=2,glimpses=2,features=3,hidden=4]",
          "glimpse_reader[grid=2,patch=2,glimpses=2,features=3,hidden=4,scales=2,core=lstm]"};
}

}  // namespace

TEST_CASE("glimpse_reader: gradients, copies of rows and all outcomes") {
  for (const auto& spec : specs()) {
    check_model({.spec = spec, .dimensions = dimensions, .batch = two_images(), .forced = forced, .outcomes = {16, 16}});
    check_gradient("more rows than cells", *lively(spec, dimensions), two_images(),
                   [] { return std::make_unique<ForcedHandler<double>>(copied(forced, 5)); });
  }
}

TEST_CASE("glimpse_reader: several labels, each after separate glimpses, an image finishes with its last label") {
  auto several = dimensions;
  several["labels_in_a_row"] = 2;
  auto batch = two_images();
  batch.integers["label"] = shaped<int>({2, 2}, {0, 2, 2, -1});
  const Options choices{{3, 1}, {0, 0}};  // the second image has no choices left
  for (const auto* core : {"rnn", "lstm"}) {
    const auto spec = std::string("glimpse_reader[grid=2,patch=2,glimpses=1,features=3,hidden=4,core=") + core + "]";
    CAPTURE(spec);
    const auto model = lively(spec, several);
    CHECK(model->structure().sites[0].times == 2);
    CHECK(model->outcomes(batch) == std::vector<double>{16, 4});
    check_gradients({.spec = spec, .dimensions = several, .batch = batch, .forced = choices, .outcomes = {16, 4}});
    // The image with one label costs the same in a reader of one label, alone.
    const auto one = lively(spec, dimensions);
    auto alone = two_images().select({1});
    ForcedHandler<double> both(choices), own(Options{{1}});
    alone.integers["label"] = shaped<int>({1}, {2});
    Tape<double> tape;
    Episode<double> episode(tape, both, 2);
    model->run(batch, episode);
    CHECK(episode.steps()[1].question.categories().options() == std::vector<int>{4, 1});
    CHECK(losses(*model, batch.select({1}), own)[0] == doctest::Approx(losses(*one, alone, own)[0]).epsilon(1e-12));
  }
}

TEST_CASE("glimpse_reader: all images may have fewer labels than the limit") {
  auto batch = two_images();
  const auto of = [&](int limit, const std::string& policy) {
    auto dimensions = two_images_dimensions;
    dimensions["labels_in_a_row"] = limit;
    batch.integers["label"] = shaped<int>({2, std::size_t(limit)}, std::vector<int>(2 * limit, -1));
    auto& label = batch.integers["label"];
    row_of(label, 0)[0] = row_of(label, 1)[1] = 2;  // the first image has one label, the second two
    row_of(label, 1)[0] = 0;
    const auto model =
        lively("glimpse_reader[grid=2,patch=2,glimpses=2,features=3,hidden=4,policy=" + policy + "]", dimensions);
    KeyedRandomness random(Key(5));
    SampleHandler<double> handler(3, random, batch.id);
    Tape<double> tape;
    Episode<double> episode(tape, handler, 2);
    model->run(batch, episode);
    CHECK(episode.steps().size() == 4);
    double sum = 0;
    for (const auto& cost : episode.costs())
      for (std::size_t r = 0; r < 6; ++r) sum += double(r + 1) * cost.loss.value().data[r];
    return sum;
  };
  for (const std::string policy : {"grid", "gaussian"}) {
    CAPTURE(policy);
    CHECK(of(4, policy) == doctest::Approx(of(2, policy)).epsilon(1e-12));
  }
}

}  // namespace hardgrad::testing::glimpse_reader_test
