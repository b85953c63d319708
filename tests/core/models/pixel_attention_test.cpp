// Pixel attention: gradients, hard and relaxed windows, enumerated answers, and the loss computed pixel by pixel.
#include "tests/core/models/given_choices.hpp"
#include "tests/support/gradient_check.hpp"

#include "core/models/parts/glimpses.hpp"

namespace hardgrad::testing::pixel_attention_test {
namespace {

Dimensions dimensions(int noise) { return {{"height", 6}, {"width", 6}, {"window", 3}, {"noise", noise}}; }

Batch two_canvases(int noise) {
  Batch batch;
  batch.id = {3, 8};
  KeyedRandomness random(Key(5));
  batch.reals["image"] = zeros<double>({2, 6, 6});
  for (std::uint32_t i = 0; i < 72; ++i) batch.reals["image"].flat(i) = random.uniform({i}) < 0.4;
  if (noise > 0) batch.reals["noise"] = zeros<double>({2, static_cast<std::size_t>(noise)});
  for (int i = 0; i < 2 * noise; ++i) batch.reals["noise"].flat(i) = 1.5 * random.uniform({100u + i}) - 0.7;
  return batch;
}

std::string spec(const std::string& settings) {
  return "pixel_attention[channels=2,hidden=3,code=2,background=0.03," + settings + "]";
}
struct Case {
  std::string spec;
  int noise, places;
};
const Case cases[] = {
    {spec("layers=1,grid=2,beta=0.7"), 2, 4}, {spec("layers=2,beta=0"), 0, 36}, {spec("layers=2,grid=3"), 3, 9}};
const Options forced{{3, 1}};

}  // namespace

TEST_CASE("pixel_attention: gradients, copies of rows and all outcomes") {
  for (const auto& [spec, noise, places] : cases)
    check_model({.spec = spec,
                 .dimensions = dimensions(noise),
                 .batch = two_canvases(noise),
                 .forced = forced,
                 .dependence = "one choice",
                 .outcomes = std::vector<double>(2, places),
                 .posterior = false});
}

TEST_CASE("pixel_attention: with all parameters zero the loss is that of even odds in the window, and of ink outside") {
  // All parameters zero: l = 0, m = s = 0, e = 0; so log 2 a pixel of the window, both divergences zero.
  auto model = make_model<double>(Spec::parse(spec("layers=2")), dimensions(2), Key(1));
  for (auto& p : model->parameters()) std::fill(p.value.begin(), p.value.end(), 0.0);
  const auto batch = two_canvases(2);
  for (int place : {0, 14, 35}) {  // the first one's window lies partly beyond the edge
    ForcedHandler<double> handler(Options{{place, place}});
    const auto loss = losses(*model, batch, handler);
    for (int b = 0; b < 2; ++b) {
      const auto image = row_of(batch.numbers("image"), b);
      double inked = 0, empty = 0;
      for (int p = 0; p < 36; ++p)
        if (std::abs(p / 6 - place / 6) > 1 || std::abs(p % 6 - place % 6) > 1) (image[p] ? inked : empty) += 1;
      CHECK(loss[b] == doctest::Approx(9 * std::log(2) - inked * std::log(0.03) - empty * std::log(0.97)).epsilon(1e-12));
    }
  }
}

TEST_CASE("pixel_attention: under weights, the pixels outside are counted as the mean over the windows") {
  auto model = make_model<double>(Spec::parse(spec("layers=2")), dimensions(0), Key(1));
  for (auto& p : model->parameters()) std::fill(p.value.begin(), p.value.end(), 0.0);
  auto batch = two_canvases(0);
  std::fill(batch.reals["image"].begin(), batch.reals["image"].end(), 0.0);  // no ink: only empty pixels cost
  ExpectedHandler<double> uniform;
  double outside = 0;  // mean over the 36 places: a window covers 2 or 3 rows and columns
  for (int place = 0; place < 36; ++place) {
    const auto along = [](int i) { return i == 0 || i == 5 ? 2 : 3; };
    outside += (36 - along(place / 6) * along(place % 6)) / 36.0;
  }
  for (double loss : losses(*model, batch, uniform))
    CHECK(loss == doctest::Approx(9 * std::log(2) - outside * std::log(0.97)).epsilon(1e-12));
}

TEST_CASE("pixel_attention: divergences equal their definitions") {
  auto model = lively(cases[2].spec, dimensions(3));
  const auto batch = two_canvases(3).select({0});
  for (auto& p : model->parameters())  // m = (0.4, -1), s = (0.2, -0.5), for any input; e = (0, .., 0, 2)
    if (p.name == "encoder.2.weight" || p.name == "attention.place.weight" || p.name == "decoder.2.weight")
      std::fill(p.value.begin(), p.value.end(), 0.0);
  model->parameters().find("encoder.2.bias")->value.storage() = {0.4, -1, 0.2, -0.5};
  std::fill_n(model->parameters().find("attention.place.bias")->value.begin(), 9, 0.0);
  model->parameters().find("attention.place.bias")->value.flat(8) = 2;
  const auto loss = [&](double beta, int noise) {
    auto other =
        make_model<double>(Spec::parse(spec("layers=2,grid=3,beta=" + std::to_string(beta))), dimensions(noise), Key(1));
    for (auto& p : other->parameters()) p.value.storage() = model->parameters().find(p.name)->value.storage();
    ForcedHandler<double> handler(Options{{4}});
    return losses(*other, two_canvases(noise).select({0}), handler)[0];
  };
  double code = 0;
  for (auto [m, s] : {std::pair{0.4, 0.2}, {-1.0, -0.5}}) code += (m * m + std::exp(2 * s) - 1) / 2 - s;
  CHECK(loss(0, 3) - loss(0, 0) == doctest::Approx(code).epsilon(1e-12));  // (the decoder ignores the code)
  const double all = 8 + std::exp(2.0), place = (8 * std::log(9 / all) + std::exp(2.0) * (2 + std::log(9 / all))) / all;
  CHECK(loss(1.5, 0) - loss(0, 0) == doctest::Approx(1.5 * place).epsilon(1e-12));
}

TEST_CASE("pixel_attention: the prediction is a pixel of the canvas, hard or most probable") {
  const auto predicted = [](const Case& c, Handler<double>& handler) {
    const auto model = lively(c.spec, dimensions(c.noise));
    Tape<double> tape;
    Episode<double> episode(tape, handler, 2);
    model->run(two_canvases(c.noise), episode);
    return episode.predictions().back().label;
  };
  ForcedHandler<double> hard(Options{{35, 8}}), few(Options{{3, 1}});
  ForcedWeights soft(Options{{35, 8}}, 0.5);
  CHECK(predicted(cases[1], hard) == std::vector<int>{35, 8});
  CHECK(predicted(cases[1], soft) == std::vector<int>{35, 8});
  CHECK(predicted(cases[0], few) == std::vector<int>{4 * 6 + 4, 1 * 6 + 4});  // 2 x 2 places: windows begin at rows 0 and 3
}

TEST_CASE("pixel_attention: canvases that do not fit are rejected, with a remedy") {
  const auto make = [](const std::string& settings, int height, int width, int noise) {
    make_model<float>(Spec::parse("pixel_attention[" + settings + "]"),
                      {{"height", height}, {"width", width}, {"window", 3}, {"noise", noise}}, Key(1));
  };
  CHECK_THROWS_WITH_AS(make("layers=2", 6, 7, 5), "pixel_attention: the canvas must be square, got 6x7", UsageError);
  CHECK_THROWS_WITH_AS(make("layers=3", 6, 6, 5),
                       "pixel_attention: a canvas of 6x6 pixels is too small for layers=3 convolutions; give layers=2 or fewer",
                       UsageError);
  CHECK_THROWS_WITH_AS(
      make("layers=2,code=6", 6, 6, 5),
      "pixel_attention: a code of 6 numbers needs as many noise numbers, the task has 5; give code=5 or the task "
      "noise=6 (noise=0: a code without noise)",
      UsageError);
  CHECK_NOTHROW(make("layers=2,code=6", 6, 6, 0));
}

TEST_CASE("mean_window: the mean of all cells' windows under their weights, and its gradient") {
  for (const auto& sensor : {Sensor{6, 3, 1, 6, 6}, Sensor{3, 4, 1, 6, 6}, Sensor{2, 8, 1, 6, 6}}) {
    CAPTURE(sensor.grid);
    const auto batch = two_canvases(0);
    const std::vector<int> example{1, 0, 1};
    const auto images = [&](auto& tape) {
      using U = std::remove_cvref_t<decltype(tape.constant(1, 1).value().data[0])>;
      const auto y = tape.constant(2, 36);
      for (int i = 0; i < 72; ++i) tape.mutable_value(y).data[i] = static_cast<U>(batch.numbers("image").flat(i));
      return y;
    };
    const auto weights = testing::random_matrix(3, sensor.cells(), 4);
    testing::expect_gradient(
        [&](auto& tape, const auto& v) { return mean_window(sensor, images(tape), std::span<const int>(example), v[0]); },
        {weights});
    Tape<double> tape;
    const auto w = testing::place(tape, {weights})[0];
    const auto got = mean_window(sensor, images(tape), std::span<const int>(example), w).value();
    const auto every = sensor.every_patch(tape, batch.numbers("image")).value();
    for (std::size_t r = 0; r < 3; ++r)
      for (std::size_t p = 0; p < sensor.values(); ++p) {
        double sum = 0;
        for (std::size_t c = 0; c < sensor.cells(); ++c) sum += w.value()(r, c) * every(example[r] * sensor.cells() + c, p);
        CHECK(got(r, p) == doctest::Approx(sum).epsilon(1e-12));
      }
  }
  Tape<double> tape;
  const std::vector<int> one{0};
  CHECK_THROWS_AS(mean_window(Sensor{3, 3, 2, 6, 6}, tape.constant(1, 36), std::span<const int>(one), tape.constant(1, 9)),
                  Bug);
  CHECK_THROWS_AS(mean_window(Sensor{3, 3, 1, 6, 6}, tape.constant(1, 36), std::span<const int>(one), tape.constant(1, 8)),
                  Bug);
}

}  // namespace hardgrad::testing::pixel_attention_test
