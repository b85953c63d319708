// Digits as square patches, features of several pixels: can a network tell the digit from a few of them?
#include <fmt/format.h>

#include "experiments/tasks/digits.hpp"
#include "experiments/tasks/options_used.hpp"

namespace hardgrad::tasks::patches {
namespace {

struct Config {
  DigitConfig digits;
  std::size_t patch = 4;

  void declare(Fields& field) {
    digits.declare(field);
    field(patch, "patch", 1, 256, "height and width of a patch, in pixels");
  }
};

/// Fields: reals "x" [B, n g], the n patches from left to right and from top to bottom, g greys in [0, 1] each; integers
/// "label" [B].
class Patches final : public DigitTask {
 public:
  Patches(const Config& config, Key key)
      : DigitTask(read_digits("patches", config.digits, key, true), config.digits.limit, key), patch_(config.patch) {
    const auto& [count, rows, cols, pixels] = of(Split::train).images;
    if (rows % patch_ != 0 || cols % patch_ != 0)
      throw UsageError(fmt::format("patches: patch={} does not divide images of {}x{}: take a divisor", patch_, rows, cols));
    down_ = rows / patch_, across_ = cols / patch_;
    provenance_ += counts("images", rows, cols);
  }

  Dimensions dimensions() const override {
    return {{"features", static_cast<int>(down_ * across_)},
            {"feature_width", static_cast<int>(patch_ * patch_)},
            {"labels", digit_classes}};
  }

  std::vector<Metric> metrics() const override { return {{.name = "accuracy", .unit = "1", .share = true}, options_used()}; }
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    for (std::size_t b = 0; b < batch.id.size(); ++b) {
      const auto said = row_of(seen.predictions, b);
      metrics[0].add(!said.empty() && said.front() == batch.ints("label")(b));
      count_options(row_of(seen.choices, b), metrics[1]);
    }
  }

 private:
  Batch drawn(Split split, const std::vector<int>& indices, Key) const override {
    const auto& set = of(split);
    const auto B = indices.size(), side = patch_;
    Batch batch;
    Array<double> x = zeros<double>({B, down_, across_, side, side});
    Array<int> label = zeros<int>({B});
    for (std::size_t b = 0; b < B; ++b) {
      batch.id.push_back(id_of(split, indices[b]));
      label(b) = static_cast<unsigned char>(set.labels[static_cast<std::size_t>(indices[b])]);
      Array<double> image = set.images.greys(static_cast<std::size_t>(indices[b])) / 255.0;
      image.reshape({down_, side, across_, side});
      xt::view(x, b) = xt::transpose(image, {0, 2, 1, 3});
    }
    x.reshape({B, down_ * across_ * side * side});
    batch.reals = {{"x", std::move(x)}};
    batch.integers = {{"label", std::move(label)}};
    return batch;
  }

  std::size_t patch_, down_ = 0, across_ = 0;
};

const TaskEntry entry = {
    .name = "patches",
    .summary = "digits as square patches, to tell from a few of them",
    .data = "drawn digits, or a folder with MNIST's idx files",
    .default_model = "selector",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Patches, entry)

}  // namespace
}  // namespace hardgrad::tasks::patches
