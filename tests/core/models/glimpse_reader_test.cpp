// The glimpse reader: gradients, branching, both ways to compute glimpses, relaxed and enumerated answers.
#include <doctest/doctest.h>

#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::glimpse_reader_test {
namespace {

const Dimensions dimensions = testing::two_images_dimensions;
const Options forced{{3, 1}, {0, 2}};

std::vector<std::string> specs() {
  return {"glimpse_reader[grid=2,patch=2,glimpses=2,features=3,hidden=4]",
          "glimpse_reader[grid=2,patch=2,glimpses=2,features=3,hidden=4,scales=2,core=lstm]"};
}

}  // namespace

TEST_CASE("glimpse_reader: gradients of losses, log probabilities and states, in every parameter") {
  const auto batch = testing::two_images();
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    auto model = testing::lively(spec, dimensions), with_posterior = testing::lively(spec, dimensions, true);
    const auto check = [&](const char* how, Model<double>& m, const MakeChooser& make, TargetTerms terms = {}) {
      CAPTURE(how);
      const auto [error, where] = testing::gradient_error(m, batch, make, false, terms);
      CAPTURE(where);
      CHECK(error < 1e-7);
    };
    check("forced", *model, [] { return std::make_unique<ForcedChooser<double>>(forced); });
    check("more rows than cells", *model, [] { return std::make_unique<ForcedChooser<double>>(testing::copied(forced, 5)); });
    check("weights", *model, [] { return std::make_unique<testing::ForcedWeights>(forced, 0.6); });
    check("expected", *model, [] { return std::make_unique<ExpectedChooser<double>>(); });
    check("enumerated", *model, [] { return std::make_unique<EnumerateChooser<double>>(); });
    check(
        "posterior", *with_posterior, [] { return std::make_unique<ForcedChooser<double>>(copied(forced, 2)); },
        with_posterior_terms);
  }
}

TEST_CASE("glimpse_reader: the gradient check detects a missing score term") {
  auto model = lively(specs()[0], dimensions);
  const auto make = [] { return std::make_unique<ForcedChooser<double>>(forced); };
  CHECK(gradient_error(*model, two_images(), make, true).first > 1e-2);
}

TEST_CASE("glimpse_reader: an example alone, copies, all cells computed at once and one-hot weights agree") {
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    const auto model = lively(spec, dimensions);
    const auto batch = two_images();
    ForcedChooser<double> once(forced), twice(copied(forced, 2)), often(copied(forced, 7));
    ForcedWeights one_hot(copied(forced, 2), 1.0);
    const auto loss = losses(*model, batch, once), two = losses(*model, batch, twice), seven = losses(*model, batch, often);
    const auto weighted = losses(*model, batch, one_hot);
    for (int b = 0; b < 2; ++b) {
      ForcedChooser<double> alone(of_example(forced, b));
      CHECK(losses(*model, batch.select({b}), alone)[0] == doctest::Approx(loss[b]).epsilon(1e-12));
    }
    REQUIRE(seven.size() == 14);
    for (int r = 0; r < 14; ++r) CHECK(seven[r] == doctest::Approx(loss[r / 7]).epsilon(1e-12));
    for (int r = 0; r < 4; ++r) {
      CHECK(two[r] == doctest::Approx(loss[r / 2]).epsilon(1e-12));
      CHECK(weighted[r] == doctest::Approx(loss[r / 2]).epsilon(1e-12));
    }
  }
}

TEST_CASE("glimpse_reader: enumerated rows sum to the expectation over all paths") {
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    const auto model = lively(spec, dimensions);
    const auto batch = two_images();
    CHECK(model->outcomes(batch) == std::vector<double>{16, 16});
    double total = 0;
    for (int b = 0; b < 2; ++b) total += expected_loss_by_paths(*model, batch.select({b}), {4, 4});
    CHECK(expected_loss_by_rows(*model, batch) == doctest::Approx(total).epsilon(1e-12));
  }
}

TEST_CASE("glimpse_reader: several labels, each after separate glimpses, an image finishes with its last label") {
  auto several = dimensions;
  several["labels_in_a_row"] = 2;
  auto batch = two_images();
  batch.integers["label"] = {{2, 2}, std::vector<int>{0, 2, 2, -1}};
  const Options choices{{3, 1}, {0, 0}};  // the second image has no choices left
  for (const auto* core : {"rnn", "lstm"}) {
    const auto spec = std::string("glimpse_reader[grid=2,patch=2,glimpses=1,features=3,hidden=4,core=") + core + "]";
    CAPTURE(spec);
    const auto model = lively(spec, several), with_posterior = lively(spec, several, true);
    CHECK(model->structure().sites[0].times == 2);
    CHECK(model->outcomes(batch) == std::vector<double>{16, 4});
    const auto gradient = [&](Model<double>& m, const MakeChooser& make, TargetTerms terms = {}) {
      const auto [error, where] = gradient_error(m, batch, make, false, terms);
      CAPTURE(where);
      CHECK(error < 1e-7);
    };
    gradient(*model, [&] { return std::make_unique<ForcedChooser<double>>(choices); });
    gradient(*model, [] { return std::make_unique<EnumerateChooser<double>>(); });
    gradient(*model, [&] { return std::make_unique<ForcedWeights>(choices, 0.6); });
    gradient(
        *with_posterior, [&] { return std::make_unique<ForcedChooser<double>>(choices); }, with_posterior_terms);
    // The image with one label costs the same in a reader of one label, alone.
    const auto one = lively(spec, dimensions);
    auto alone = two_images().select({1});
    ForcedChooser<double> both(choices), own(Options{{1}});
    alone.integers["label"] = {{1}, std::vector<int>{2}};
    Tape<double> tape;
    Episode<double> episode(tape, both, 2);
    model->run(batch, episode);
    CHECK(episode.steps()[1].question.categories().options() == std::vector<int>{4, 1});
    CHECK(losses(*model, batch.select({1}), own)[0] == doctest::Approx(losses(*one, alone, own)[0]).epsilon(1e-12));
  }
}

}  // namespace hardgrad::testing::glimpse_reader_test
