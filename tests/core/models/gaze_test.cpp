// The glimpse reader with free places: gradients through the places, and its input.
#include <doctest/doctest.h>

#include "core/choice/normal.hpp"
#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::gaze_test {
namespace {

const Dimensions dimensions = two_images_dimensions;

std::vector<std::string> specs() {
  return {"glimpse_reader[policy=gaussian,patch=2,glimpses=2,features=3,hidden=4]",
          "glimpse_reader[policy=gaussian,patch=2,glimpses=2,features=3,hidden=4,scales=2,core=lstm,scale=0.4]"};
}

/// `copies` rows an example: fixed numbers for all parameters, or fixed noise.
class Fixed final : public Handler<double> {
 public:
  Fixed(int copies, bool noise) : copies_(copies), noise_(noise) {}
  Choice<double> choose(Tape<double>& tape, const Question<double>& question) override {
    const auto rows = fan_out(question, question.site.rows->is_root() ? copies_ : 1);
    if (noise_) return question.distribution->reparameterised_sample(tape, rows, {random_, id_, question.step});
    auto value = tape.constant(rows->size(), 2);
    for (std::size_t i = 0; i < rows->size() * 2; ++i)
      tape.mutable_value(value).data[i] = std::sin(1.9 * static_cast<double>(i) + 0.7 * question.step) * 0.8;
    return {rows, ChosenNumbers<double>{value}};
  }

 private:
  int copies_;
  bool noise_;
  KeyedRandomness random_{Key(21)};
  std::vector<std::uint32_t> id_ = {8, 9};
};

}  // namespace

TEST_CASE("gaze: gradients of losses, log probabilities and states, at given places and through the draws") {
  const auto batch = two_images();
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    auto model = lively(spec, dimensions), with_posterior = lively(spec, dimensions, true);
    const auto check = [&](const char* how, Model<double>& m, int copies, bool noise, TargetTerms terms = {}) {
      check_gradient(
          how, m, batch, [&] { return std::make_unique<Fixed>(copies, noise); }, terms, 1e-6);
    };
    check("given places", *model, 1, false);
    check("more rows", *model, 3, false);
    check("through the draws", *model, 3, true);
    check("posterior", *with_posterior, 2, false, with_posterior_terms);
    check("posterior, through the draws", *with_posterior, 2, true, with_posterior_terms);
  }
}

TEST_CASE("gaze: the gradient check detects a missing score term") {
  auto model = lively(specs()[0], dimensions);
  CHECK(gradient_error(
            *model, two_images(), [] { return std::make_unique<Fixed>(1, false); }, true)
            .first > 1e-2);
}

TEST_CASE(
    "gaze: one site of two columns, a mean within the image, the scale of the settings, and nothing visible outside the "
    "image") {
  const auto model = lively(specs()[1], dimensions);
  const auto batch = two_images();
  const auto& site = model->structure().sites[0];
  CHECK(site.kind == SiteKind::normal);
  CHECK(site.columns == 2);
  CHECK(model->structure().dependence() == "sequential");
  CHECK(model->outcomes(batch, 5) == std::vector<double>{625, 625});
  Tape<double> tape;
  Fixed handler(4, true);
  Episode<double> episode(tape, handler, 2);
  model->run(batch, episode);
  int rows = 0;
  for (const auto& step : episode.steps()) {
    const auto& normal = as_normal(*step.question.distribution);
    for (std::size_t i = 0; i < normal.location().value().size(); ++i, ++rows) {
      CHECK(std::abs(normal.location().value().data[i]) < 1);
      CHECK(std::exp(normal.log_scale().value().data[i]) == doctest::Approx(0.4));
    }
  }
  CHECK(rows == 2 * (2 + 8));
  // Far outside, the images look the same; at a place inside they differ.
  struct At final : Handler<double> {
    double place;
    explicit At(double p) : place(p) {}
    Choice<double> choose(Tape<double>& tape, const Question<double>& question) override {
      const auto rows = fan_out(question, 1);
      return {rows, ChosenNumbers<double>{tape.constant(rows->size(), 2, place)}};
    }
  };
  auto same_label = batch;
  same_label.integers["label"] = shaped<int>({2}, {1, 1});
  At away(-7), centre(0.1);
  const auto blind = losses(*model, same_label, away), seeing = losses(*model, same_label, centre);
  CHECK(blind[0] == blind[1]);
  CHECK(std::abs(seeing[0] - seeing[1]) > 1e-3);
}

}  // namespace hardgrad::testing::gaze_test
