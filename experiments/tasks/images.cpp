// Binary images for density models: drawn digits, files in MNIST's format, or binarised images.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <numeric>

#include "core/random/randomness.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/tasks/digits.hpp"
#include "experiments/tasks/loaders/arrays.hpp"
#include "experiments/tasks/options_used.hpp"

namespace hardgrad::tasks::images {
namespace {

/// The file binarized_mnist_<part>.amat of a folder, plain or gzipped; empty if there is none.
std::string amat_file(const std::string& folder, const std::string& part) {
  for (const auto* ending : {"", ".gz"})
    if (auto path = fmt::format("{}/binarized_mnist_{}.amat{}", folder, part, ending); path_kind(path) != PathKind::missing)
      return path;
  return {};
}

Digits read_amat(const std::string& folder) {
  Digits digits{{}, folder};
  const auto& first = digits.of_split[0].images;
  for (std::size_t next = 0; const auto* part : {"train", "valid", "test"}) {
    const auto path = amat_file(folder, part);
    if (path.empty())
      throw InputError(
          fmt::format("{}: there is no binarized_mnist_{}.amat, plain or .gz, next to the training file", folder, part));
    auto& images = digits.of_split[next++].images;
    images = parse_amat(read_text(path));
    if (images.rows != first.rows)
      throw InputError(fmt::format("{}: images of {}x{}, but training images are {}x{}", path, images.rows, images.cols,
                                   first.rows, first.cols));
  }
  return digits;
}

Digits read(const DigitConfig& config, Key key) {
  const auto path = find_input(config.path);
  return !path.empty() && !amat_file(path, "train").empty() ? read_amat(path) : read_digits("images", config, key, false);
}

enum class Binarise { dynamic, once, thresholded };
constexpr Named<Binarise> binarisations[] = {
    {"dynamic", Binarise::dynamic}, {"static", Binarise::once}, {"thresholded", Binarise::thresholded}};

struct Config {
  DigitConfig digits;
  Binarise binarise = Binarise::dynamic;
  double threshold = 0.5;
  int bound_samples = 100;

  void declare(Fields& field) {
    digits.declare(
        field,
        "folder of MNIST's or Fashion-MNIST's files, or of binarized_mnist_{train,valid,test}.amat; empty: drawn digits");
    field(binarise, "binarise", binarisations,
          "bits drawn in every epoch, or once, with the greys as probabilities; or by the threshold");
    field(threshold, "threshold", 0, 1, "binarise=thresholded: brighter pixels, from 0 to 1, become 1").below();
    field(bound_samples, "bound_samples", 0, 1e6, "samples of the bound in the last evaluation; 0: none");
  }
};

/// Field: reals "image" [B, H, W] of zeros and ones. A grey value v becomes 1 with probability v / 255, drawn once from the
/// example's id (static) or anew in every training epoch (dynamic); or it becomes 1 if v / 255 exceeds a threshold. Bits that
/// do not change are kept, a byte each, from the first batch with their image.
class Images final : public DigitTask {
 public:
  Images(const Config& config, Key key)
      : DigitTask(read(config.digits, key), config.digits.limit, key / "bits"),
        binarise_(config.binarise),
        threshold_(config.threshold),
        bound_samples_(config.bound_samples) {
    for (auto split : {Split::train, Split::heldout, Split::test})
      if (fixed(split)) kept_[static_cast<std::size_t>(split)] = Kept(of(split).images);
    const auto& train = of(Split::train).images;
    provenance_ +=
        fmt::format("{}, binarisation {}", counts("images", train.rows, train.cols), name_of(binarise_, binarisations));
  }

  Dimensions dimensions() const override {
    const auto& train = of(Split::train).images;
    return {{"height", static_cast<int>(train.rows)}, {"width", static_cast<int>(train.cols)}, {"levels", 2}};
  }
  int bound_samples() const override { return bound_samples_; }
  std::vector<Metric> metrics() const override { return {options_used()}; }
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    for (std::size_t b = 0; b < batch.id.size(); ++b) count_options(row_of(seen.choices, b), metrics[0]);
  }

 private:
  bool fixed(Split split) const { return binarise_ != Binarise::dynamic || split != Split::train; }

  static bool draw(std::uint8_t grey, KeyedRandomness& random, std::uint32_t id, std::size_t pixel) {
    if (grey == 0 || grey == 255) return grey == 255;
    return random.uniform({.example = id, .index = static_cast<std::uint32_t>(pixel)}) < grey / 255.0;
  }

  struct Kept {
    Kept() = default;
    explicit Kept(const IdxImages& images)
        : bits(std::make_unique_for_overwrite<std::uint8_t[]>(images.pixels.size())), drawn(new std::once_flag[images.count]) {}
    std::unique_ptr<std::uint8_t[]> bits;     ///< of the images drawn so far
    std::unique_ptr<std::once_flag[]> drawn;  ///< of each image
  };

  /// The bits of an image, drawn by the first thread that asks for it.
  const std::uint8_t* kept_bits(Split split, int index, std::uint32_t id) const {
    const auto& images = of(split).images;
    const auto& kept = kept_[static_cast<std::size_t>(split)];
    const std::size_t size = images.rows * images.cols;
    const auto* grey = images.image(index);
    auto* bits = kept.bits.get() + index * size;
    std::call_once(kept.drawn[index], [&] {
      KeyedRandomness random(key_);
      for (std::size_t p = 0; p < size; ++p)
        bits[p] = binarise_ == Binarise::thresholded ? grey[p] / 255.0 > threshold_ : draw(grey[p], random, id, p);
    });
    return bits;
  }

  Batch drawn(Split split, const std::vector<int>& indices, Key key) const override {
    const auto& images = of(split).images;
    KeyedRandomness random(key);
    Batch batch;
    Array<double> bits = zeros<double>({indices.size(), images.rows, images.cols});
    for (std::size_t b = 0; b < indices.size(); ++b) {
      const auto id = batch.id.emplace_back(id_of(split, indices[b]));
      const auto to = row_of(bits, b);
      if (fixed(split)) {
        std::copy_n(kept_bits(split, indices[b], id), to.size(), to.begin());
        continue;
      }
      const auto* grey = images.image(indices[b]);
      for (std::size_t p = 0; p < to.size(); ++p) to[p] = draw(grey[p], random, id, p);
    }
    batch.reals = {{"image", std::move(bits)}};
    return batch;
  }

  Binarise binarise_;
  double threshold_;
  int bound_samples_;
  std::array<Kept, 3> kept_;  // by split
};

const TaskEntry entry = {
    .name = "images",
    .summary = "binary images for density models",
    .data = "drawn digits, or a folder with MNIST's idx files or with the fixed binarisation's .amat files (plain or .gz)",
    .default_model = "belief_network",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Images, entry)

}  // namespace
}  // namespace hardgrad::tasks::images
