// Reading a digit by glimpses: drawn digits or MNIST, plain, moved about a larger canvas, or amid clutter.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/random/randomness.hpp"
#include "experiments/tasks/digits.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad {
namespace {

/// Fields: reals "image" [B, H, W] in [0, 1]; "label" [B]; "box" [B, 4] of the digit's ink: first row, first
/// column, last row + 1, last column + 1. Images stay bytes; canvas, clutter and noise are made anew from the
/// example's id.
class Glimpse final : public Task {
 public:
  Glimpse(const Settings& settings, Key key)
      : key_(key),
        canvas_(static_cast<std::size_t>(settings.integer("canvas"))),
        clutter_(settings.integer("clutter")),
        piece_(static_cast<std::size_t>(settings.integer("clutter_size"))),
        noise_(settings.real("noise")) {
    auto digits = read_digits("glimpse", settings, key, true);
    train_ = std::move(digits.train);
    test_ = std::move(digits.test);
    provenance_ = digits.provenance;
    const auto heldout = digits.heldout;
    const auto limit = static_cast<std::size_t>(settings.integer("limit"));
    first_heldout_ = train_.images.count - heldout;
    sizes_ = {limit > 0 ? std::min(limit, first_heldout_) : first_heldout_, heldout, test_.images.count};
    rows_ = canvas_ ? canvas_ : train_.images.rows;
    cols_ = canvas_ ? canvas_ : train_.images.cols;
    if (rows_ < train_.images.rows || cols_ < train_.images.cols)
      throw UsageError(fmt::format("glimpse: canvas must be at least the digits' own size, {}, got {}",
                                   std::max(train_.images.rows, train_.images.cols), canvas_));
    if (clutter_ > 0 && piece_ > std::min(train_.images.rows, train_.images.cols))
      throw UsageError(fmt::format("glimpse: clutter_size must be at most the digits' own size, {}, got {}",
                                   std::min(train_.images.rows, train_.images.cols), piece_));
    provenance_ +=
        fmt::format(": {} images of {}x{} to train, {} held out, {} to test", sizes_[0], rows_, cols_, sizes_[1], sizes_[2]);
  }

  Dimensions dimensions() const override {
    return {{"height", static_cast<int>(rows_)}, {"width", static_cast<int>(cols_)}, {"classes", digit_classes}};
  }
  std::size_t size(Split split) const override { return sizes_[static_cast<std::size_t>(split)]; }
  std::string provenance() const override { return provenance_; }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    const auto B = indices.size();
    Batch batch;
    Array<double> image({B, rows_, cols_});
    Array<int> label({B}), box({B, 4});
    for (std::size_t b = 0; b < B; ++b) {
      if (indices[b] < 0 || static_cast<std::size_t>(indices[b]) >= size(split)) throw Bug("no such image");
      const auto i = static_cast<std::size_t>(indices[b]) + (split == Split::heldout ? first_heldout_ : 0);
      const auto& set = split == Split::test ? test_ : train_;
      const auto id = static_cast<std::uint32_t>(split == Split::test ? train_.images.count + i : i);
      batch.id.push_back(id);
      label.data[b] = static_cast<unsigned char>(set.labels[i]);
      paint(set.images.image(i), id, image.row(b), box.row(b));
    }
    batch.reals = {{"image", std::move(image)}};
    batch.integers = {{"label", std::move(label)}, {"box", std::move(box)}};
    return batch;
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "error_rate", .unit = "1", .higher_is_better = false}, {.name = "accuracy", .unit = "1"}};
  }
  /// The last prediction counts.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto& label = batch.ints("label");
    for (std::size_t b = 0; b < label.size(); ++b) {
      int answer = -1;
      for (int predicted : seen.predictions.row(b))
        if (predicted >= 0) answer = predicted;
      metrics[0].numerator += answer != label.data[b];
      metrics[1].numerator += answer == label.data[b];
      for (auto& metric : metrics) metric.denominator += 1;
    }
  }

 private:
  void paint(const std::uint8_t* digit, std::uint32_t id, std::span<double> image, std::span<int> box) const {
    const auto rows = train_.images.rows, cols = train_.images.cols;
    KeyedRandomness random(key_ / "canvas");
    std::uint32_t draws = 0;
    const auto below = [&](std::size_t bound) {
      return static_cast<std::size_t>(random.below(bound, {.example = id, .step = draws++}));
    };
    const auto copy = [&](const std::uint8_t* from, std::size_t height, std::size_t width, std::size_t top, std::size_t left) {
      for (std::size_t r = 0; r < height; ++r)
        for (std::size_t c = 0; c < width; ++c) {
          auto& pixel = image[(top + r) * cols_ + left + c];
          pixel = std::max(pixel, from[r * cols + c] / 255.0);
        }
    };
    const auto top = below(rows_ - rows + 1), left = below(cols_ - cols + 1);
    // Clutter (Mnih et al. 2014): pieces of other training digits anywhere.
    for (int k = 0; k < clutter_; ++k) {
      const auto* other = train_.images.image(below(sizes_[0]));
      const auto from = below(rows - piece_ + 1) * cols + below(cols - piece_ + 1);
      const auto r = below(rows_ - piece_ + 1), c = below(cols_ - piece_ + 1);
      copy(other + from, piece_, piece_, r, c);
    }
    copy(digit, rows, cols, top, left);
    if (noise_ > 0)
      for (std::size_t p = 0; p < image.size(); ++p)
        image[p] = std::min(
            1.0, image[p] + noise_ * random.uniform({.example = id, .step = 1u << 20, .index = static_cast<std::uint32_t>(p)}));

    constexpr std::uint8_t ink = 26;  // a tenth of full black
    std::size_t first_row = rows, first_col = cols, end_row = 0, end_col = 0;
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < cols; ++c)
        if (digit[r * cols + c] >= ink) {
          first_row = std::min(first_row, r), end_row = r + 1;
          first_col = std::min(first_col, c), end_col = std::max(end_col, c + 1);
        }
    if (end_row == 0) first_row = first_col = 0, end_row = rows, end_col = cols;  // no ink at all
    const std::array<std::size_t, 4> corners = {first_row + top, first_col + left, end_row + top, end_col + left};
    std::transform(corners.begin(), corners.end(), box.begin(), [](auto x) { return static_cast<int>(x); });
  }

  Key key_;
  std::size_t canvas_;
  int clutter_;
  std::size_t piece_;
  double noise_;
  LabelledImages train_, test_;
  std::size_t first_heldout_ = 0, rows_ = 0, cols_ = 0;
  std::array<std::size_t, 3> sizes_{};
  std::string provenance_;
};

std::vector<ParameterInfo> parameters() {
  using P = ParameterInfo;
  auto all = digit_parameters();
  all.push_back(P::integer("canvas", 0, 0, 1024, "side of the canvas the digit is put on at a random place; 0: its own size"));
  all.push_back(P::integer("clutter", 0, 0, 64, "pieces of other digits strewn over the canvas"));
  all.push_back(P::integer("clutter_size", 8, 1, 256, "side of such a piece, in pixels"));
  all.push_back(P::real("noise", 0, 0, 1, "uniform noise from 0 to this on every pixel"));
  return all;
}

const Registration<TaskEntry> registered({
    .name = "glimpse",
    .summary = "a digit read by a few small glimpses",
    .data = "drawn digits, or a folder with MNIST's four idx files (plain or .gz)",
    .default_model = "glimpse_reader",
    .parameters = parameters(),
    .make = [](const Settings& settings, Key key) -> std::unique_ptr<Task> { return std::make_unique<Glimpse>(settings, key); },
});

}  // namespace
}  // namespace hardgrad
