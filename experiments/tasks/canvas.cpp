// Finding a digit on a canvas: MNIST or drawn digits as bits, each at a random place of an empty canvas (Liu et al. 2019).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/random/randomness.hpp"
#include "experiments/tasks/digits.hpp"

namespace hardgrad::tasks::canvas {
namespace {

struct Config {
  DigitConfig digits;
  std::size_t canvas = 68, noise = 5;

  void declare(Fields& field) {
    digits.declare(field);
    field(canvas, "canvas", 8, 256, "side of the empty canvas of a digit, in pixels");
    field(noise, "noise", 0, 1024, "standard normal numbers per image, for a model's reparameterised code");
  }
};

/// Fields: reals "image" [B, C, C] of zeros and ones, "noise" [B, noise] standard normal (if noise > 0); "box" [B, 4] of the
/// digit's square: first row, first column, last row + 1, last column + 1. The place, the bits (a grey value v is 1 with
/// probability v / 255) and the noise are drawn anew in every training epoch; `batch` draws them from the example's id.
class Canvas final : public DigitTask {
 public:
  Canvas(const Config& config, Key key)
      : DigitTask(read_digits("canvas", config.digits, key, false), config.digits.limit, key / "canvas"),
        side_(config.canvas),
        noise_(config.noise) {
    const auto& train = of(Split::train).images;
    if (train.rows != train.cols)
      throw InputError(fmt::format("{}: images of {}x{}; they must be square", provenance_, train.rows, train.cols));
    digit_ = train.rows;
    if (side_ < digit_)
      throw UsageError(fmt::format("canvas: canvas must be at least the digits' own size, {}, got {}", digit_, side_));
    provenance_ += fmt::format("{}, on {}x{} pixels", counts("digits", digit_, digit_), side_, side_);
  }

  Dimensions dimensions() const override {
    const auto side = static_cast<int>(side_);
    return {{"height", side}, {"width", side}, {"window", static_cast<int>(digit_)}, {"noise", static_cast<int>(noise_)}};
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "place_error", .unit = "pixel", .higher_is_better = false}, {.name = "ink_seen", .unit = "1"}};
  }
  /// Scores the last predicted place, the pixel above and left of the window's middle as row C + column: the distance of its
  /// window from the digit's square, and the share of the ink in it.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto C = static_cast<int>(side_), window = static_cast<int>(digit_);
    for (std::size_t b = 0; b < batch.id.size(); ++b) {
      int place = -1;
      for (int predicted : row_of(seen.predictions, b))
        if (predicted >= 0) place = predicted;
      if (place < 0) continue;
      const auto box = row_of(batch.ints("box"), b);
      const int before = (window - 1) / 2, top = place / C - before, left = place % C - before;
      metrics[0].add(std::hypot(top - box[0], left - box[1]));
      const auto image = xt::view(batch.numbers("image"), b);
      const auto on_canvas = [&](int from) { return xt::range(std::clamp(from, 0, C), std::clamp(from + window, 0, C)); };
      const double all = xt::sum(image)(), inside = xt::sum(xt::view(image, on_canvas(top), on_canvas(left)))();
      metrics[1].add(all > 0 ? inside / all : 1);
    }
  }

 private:
  Batch drawn(Split split, const std::vector<int>& indices, Key key) const override {
    const auto B = indices.size(), D = digit_;
    KeyedRandomness bits(key / "bits"), places(key / "place"), numbers(key / "noise");
    Batch batch;
    Array<double> image = zeros<double>({B, side_, side_}), noise = zeros<double>({B, noise_});
    Array<int> box = zeros<int>({B, 4});
    for (std::size_t b = 0; b < B; ++b) {
      const auto id = id_of(split, indices[b]);
      batch.id.push_back(id);
      const auto bound = static_cast<std::uint32_t>(side_ - D + 1);
      const std::size_t top = places.below(bound, {.example = id}), left = places.below(bound, {.example = id, .step = 1});
      xt::view(box, b) = xt::adapt(std::array{top, left, top + D, left + D});
      const auto* grey = of(split).images.image(static_cast<std::size_t>(indices[b]));
      for (std::size_t p = 0; p < D * D; ++p)
        image(b, top + p / D, left + p % D) =
            bits.uniform({.example = id, .index = static_cast<std::uint32_t>(p)}) < grey[p] / 255.0;
      for (std::size_t n = 0; n < noise_; ++n)
        noise(b, n) = numbers.standard(Standard::normal, {.example = id, .index = static_cast<std::uint32_t>(n)});
    }
    batch.reals["image"] = std::move(image);
    if (noise_ > 0) batch.reals["noise"] = std::move(noise);
    batch.integers["box"] = std::move(box);
    return batch;
  }

  std::size_t side_, noise_;
  std::size_t digit_ = 0;  // side of a digit
};

const TaskEntry entry = {
    .name = "canvas",
    .summary = "a digit at a random place of a canvas, to find and encode",
    .data = "drawn digits, or a folder with MNIST's idx files (plain or .gz)",
    .default_model = "pixel_attention",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Canvas, entry)

}  // namespace
}  // namespace hardgrad::tasks::canvas
