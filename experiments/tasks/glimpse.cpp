// Reading digits by glimpses: one or several, drawn or MNIST's, plain, at random places of a larger canvas, or amid clutter.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "experiments/tasks/digits.hpp"
#include "experiments/tasks/draws.hpp"

namespace hardgrad::tasks::glimpse {
namespace {

struct Config {
  DigitConfig source;
  std::size_t digits = 1, canvas = 0;
  int clutter = 0;
  std::size_t clutter_size = 8;
  double noise = 0;

  void declare(Fields& field) {
    source.declare(field);
    field(digits, "digits", 1, 8, "most digits per image; several are read from left to right, then the end class");
    field(canvas, "canvas", 0, 1024,
          "side of the canvas, on which a digit has a random place; 0: the digit's own size (times the number of digits)");
    field(clutter, "clutter", 0, 64, "pieces of other digits on the canvas");
    field(clutter_size, "clutter_size", 1, 256, "side of a piece of clutter, in pixels");
    field(noise, "noise", 0, 1, "uniform noise from 0 to this on every pixel");
  }
};

/// Fields: reals "image" [B, H, W] in [0, 1]; "label" [B]; "box" [B, 4] of the digit's ink: first row, first
/// column, last row + 1, last column + 1. With several digits (Ba, Mnih & Kavukcuoglu 2015, sec. 4.1), from left to right and
/// never above each other: "label" [B, digits + 1] ends with the end class, "box" [B, 4 digits]; -1 pads. Images are stored as
/// bytes. Places, clutter and noise are drawn from the example's id; in training, anew in every epoch.
class Glimpse final : public DigitTask {
 public:
  Glimpse(const Config& config, Key key)
      : DigitTask(read_digits("glimpse", config.source, key, true), config.source.limit, key),
        digits_(config.digits),
        canvas_(config.canvas),
        clutter_(config.clutter),
        piece_(config.clutter_size),
        noise_(config.noise) {
    const auto& [count, rows, cols, pixels] = of(Split::train).images;
    rows_ = canvas_ ? canvas_ : digits_ * rows;
    cols_ = canvas_ ? canvas_ : digits_ * cols;
    if (rows_ < rows || cols_ < cols)
      throw UsageError(
          fmt::format("glimpse: canvas must be at least the digits' own size, {}, got {}", std::max(rows, cols), canvas_));
    if (cols_ < digits_ * cols)
      throw UsageError(fmt::format("glimpse: {} digits side by side take {} pixels, but the canvas has {}; give canvas={}",
                                   digits_, digits_ * cols, cols_, digits_ * cols));
    if (clutter_ > 0 && piece_ > std::min(rows, cols))
      throw UsageError(
          fmt::format("glimpse: clutter_size must be at most the digits' own size, {}, got {}", std::min(rows, cols), piece_));
    provenance_ += counts("images", rows_, cols_);
  }

  Dimensions dimensions() const override {
    Dimensions all{{"height", static_cast<int>(rows_)}, {"width", static_cast<int>(cols_)}, {"classes", digit_classes}};
    if (digits_ > 1) {
      all["classes"] = digit_classes + 1;
      all["labels_in_a_row"] = static_cast<int>(digits_) + 1;
    }
    return all;
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "error_rate", .unit = "1", .higher_is_better = false, .share = true},
            {.name = "accuracy", .unit = "1", .share = true}};
  }
  /// With one digit the last prediction counts. With several, all labels including the end class must be right and in order.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto& label = batch.ints("label");
    const auto given = [](std::span<const int> labels) {
      std::vector<int> all;
      std::copy_if(labels.begin(), labels.end(), std::back_inserter(all), [](int one) { return one >= 0; });
      return all;
    };
    for (std::size_t b = 0; b < batch.id.size(); ++b) {
      auto said = given(row_of(seen.predictions, b));
      if (digits_ == 1 && said.size() > 1) said = {said.back()};
      const bool right = said == given(row_of(label, b));
      metrics[0].add(!right);
      metrics[1].add(right);
    }
  }

 private:
  /// A digit's image, and the first row and column of its square.
  struct Placed {
    std::size_t image, top, left;
  };

  Batch drawn(Split split, const std::vector<int>& indices, Key key) const override {
    const auto B = indices.size();
    Batch batch;
    Array<double> image = zeros<double>({B, rows_, cols_});
    Array<int> label = digits_ == 1 ? zeros<int>({B}) : full<int>({B, digits_ + 1}, -1), box = full<int>({B, 4 * digits_}, -1);
    for (std::size_t b = 0; b < B; ++b) {
      const auto& set = of(split);
      const auto id = id_of(split, indices[b]);
      batch.id.push_back(id);
      const auto digits = placed(split, static_cast<std::size_t>(indices[b]), id, key);
      for (std::size_t k = 0; k < digits.size(); ++k) {
        row_of(label, b)[k] = static_cast<unsigned char>(set.labels[digits[k].image]);
        xt::view(box, b, xt::range(4 * k, 4 * k + 4)) = xt::adapt(bound(set.images.greys(digits[k].image), digits[k]));
      }
      if (digits_ > 1) row_of(label, b)[digits.size()] = digit_classes;
      paint(set.images, digits, id, key, image, b);
    }
    batch.reals = {{"image", std::move(image)}};
    batch.integers = {{"label", std::move(label)}, {"box", std::move(box)}};
    return batch;
  }

  /// Example i of a split at a random place. With several digits it is one of 1 to digits_; the split provides the others.
  std::vector<Placed> placed(Split split, std::size_t i, std::uint32_t id, Key key) const {
    const auto rows = of(Split::train).images.rows, cols = of(Split::train).images.cols;
    if (digits_ == 1) {
      Draws draw(key / "canvas", id);
      const auto top = draw.below(rows_ - rows + 1);
      return {{i, top, draw.below(cols_ - cols + 1)}};
    }
    Draws draw(key / "digits", id);
    const auto n = 1 + draw.below(digits_), own = draw.below(n);
    std::vector<Placed> all;
    std::vector<std::size_t> gap;  // space to the left of each digit, not counting the other digits
    for (std::size_t k = 0; k < n; ++k) {
      const auto image = draw.below(size(split));
      all.push_back({k == own ? i : image, draw.below(rows_ - rows + 1), 0});
      gap.push_back(draw.below(cols_ - n * cols + 1));
    }
    std::sort(gap.begin(), gap.end());
    for (std::size_t k = 0; k < n; ++k) all[k].left = gap[k] + k * cols;
    return all;
  }

  /// Image b of the batch.
  void paint(const IdxImages& digit, const std::vector<Placed>& digits, std::uint32_t id, Key key, Array<double>& images,
             std::size_t b) const {
    const auto rows = of(Split::train).images.rows, cols = of(Split::train).images.cols;
    Draws draw(key / "canvas", id, 2);  // draws 0 and 1 are the place
    const auto copy = [&](const auto& greys, std::size_t top, std::size_t left) {
      auto place = xt::view(images, b, xt::range(top, top + greys.shape(0)), xt::range(left, left + greys.shape(1)));
      place = xt::maximum(place, greys / 255.0);
    };
    // Clutter (Mnih et al. 2014): pieces of other training digits at random places.
    for (int k = 0; k < clutter_; ++k) {
      const auto other = of(Split::train).images.greys(draw.below(size(Split::train)));
      const auto from = draw.below(rows - piece_ + 1) * cols + draw.below(cols - piece_ + 1);
      const auto r = draw.below(rows_ - piece_ + 1), c = draw.below(cols_ - piece_ + 1);
      const auto top = from / cols, left = from % cols;
      copy(xt::view(other, xt::range(top, top + piece_), xt::range(left, left + piece_)), r, c);
    }
    for (const auto& [number, top, left] : digits) copy(digit.greys(number), top, left);
    const auto image = row_of(images, b);
    if (noise_ > 0)
      for (std::size_t p = 0; p < image.size(); ++p)
        image[p] = std::min(1.0, image[p] + noise_ * draw.numbered(static_cast<std::uint32_t>(p)));
  }

  /// The box around a digit's ink.
  template <class Greys>
  static std::array<std::size_t, 4> bound(const Greys& digit, const Placed& where) {
    constexpr std::uint8_t ink = 26;  // a tenth of full black
    const auto inked = xt::nonzero(digit >= ink);
    const auto &row = inked[0], &col = inked[1];
    const auto [top, left] = std::pair{where.top, where.left};
    if (row.empty()) return {top, left, top + digit.shape(0), left + digit.shape(1)};
    const auto [first, last] = std::minmax_element(col.begin(), col.end());
    return {top + row.front(), left + *first, top + row.back() + 1, left + *last + 1};
  }

  std::size_t digits_, canvas_;
  int clutter_;
  std::size_t piece_;
  double noise_;
  std::size_t rows_ = 0, cols_ = 0;
};

const TaskEntry entry = {
    .name = "glimpse",
    .summary = "one or several digits, to read by a few small glimpses",
    .data = "drawn digits, or a folder with MNIST's four idx files (plain or .gz)",
    .default_model = "glimpse_reader",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Glimpse, entry)

}  // namespace
}  // namespace hardgrad::tasks::glimpse
