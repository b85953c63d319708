#include "experiments/tasks/digits.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/error.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/tasks/generated_images.hpp"
#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {
namespace {

LabelledImages read_mnist(const std::string& folder, const std::string& part, bool labelled) {
  const auto find = [&](const std::string& stem, const std::string& kind) {
    for (const auto* dot : {"-", "."})
      for (const auto* ending : {".gz", ""}) {
        auto path = fmt::format("{}/{}-{}{}{}-ubyte{}", folder, part, stem, dot, kind, ending);
        if (path_kind(path) != PathKind::missing) return path;
      }
    throw InputError(fmt::format("{}: there is no {}-{}-{}-ubyte, plain or .gz; the folder must hold MNIST's four files",
                                 folder, part, stem, kind));
  };
  const auto images = find("images", "idx3");
  LabelledImages result{read_idx_images(images), {}};
  if (!labelled) return result;
  const auto labels = find("labels", "idx1");
  result.labels = read_idx_labels(labels, digit_classes);
  if (result.labels.size() != result.images.count)
    throw InputError(fmt::format("{}: {} labels, but {} holds {} images; the files do not belong together", labels,
                                 result.labels.size(), images, result.images.count));
  return result;
}

LabelledImages drawn(std::size_t count, int size, Key key) {
  LabelledImages result{draw_digits(count, size, key), std::string(count, '\0')};
  for (std::size_t i = 0; i < count; ++i) result.labels[i] = static_cast<char>(i % digit_classes);
  return result;
}

/// Images [from, to) of a set.
LabelledImages part(const LabelledImages& all, std::size_t from, std::size_t to) {
  const auto& [count, rows, cols, pixels] = all.images;
  return {{to - from, rows, cols, pixels.substr(from * rows * cols, (to - from) * rows * cols)},
          all.labels.empty() ? "" : all.labels.substr(from, to - from)};
}

/// The last `heldout` images of `train` are for validation.
Digits split(const LabelledImages& train, LabelledImages test, std::size_t heldout, std::string provenance) {
  const auto all = train.images.count;
  return {{part(train, 0, all - heldout), part(train, all - heldout, all), std::move(test)}, std::move(provenance)};
}

}  // namespace

Digits read_digits(const std::string& task, const DigitConfig& config, Key key, bool labelled) {
  const auto path = find_input(config.path);
  if (path.empty()) {
    const auto heldout = std::max<std::size_t>(1, config.examples / 4);
    return split(drawn(config.examples + heldout, config.size, key / "train"), drawn(heldout, config.size, key / "test"),
                 heldout, "generated");
  }
  if (path_kind(path) != PathKind::folder)
    throw InputError(
        fmt::format("{}: is not a folder, neither here nor below the folder in HARDGRAD_DATA; path must be a folder "
                    "with MNIST's four files",
                    path));
  const auto train = read_mnist(path, "train", labelled);
  auto test = read_mnist(path, "t10k", labelled);
  const auto heldout = config.heldout;
  if (train.images.rows != test.images.rows || train.images.cols != test.images.cols)
    throw InputError(fmt::format("{}: training images are {}x{}, but test images {}x{}", path, train.images.rows,
                                 train.images.cols, test.images.rows, test.images.cols));
  if (heldout >= train.images.count)
    throw UsageError(
        fmt::format("{}: heldout must be below the number of training images, {}, got {}", task, train.images.count, heldout));
  return split(train, std::move(test), heldout, path);
}

DigitTask::DigitTask(Digits digits, std::size_t limit, Key key)
    : key_(key), provenance_(std::move(digits.provenance)), of_split_(std::move(digits.of_split)) {
  for (std::size_t s = 1; s < 3; ++s) first_id_[s] = first_id_[s - 1] + of_split_[s - 1].images.count;
  if (limit > 0 && limit < of_split_[0].images.count) of_split_[0] = part(of_split_[0], 0, limit);
}

std::uint32_t DigitTask::id_of(Split split, int index) const {
  if (index < 0 || static_cast<std::size_t>(index) >= size(split)) throw Bug("no such image");
  return static_cast<std::uint32_t>(first_id_[static_cast<std::size_t>(split)]) + static_cast<std::uint32_t>(index);
}

std::string DigitTask::counts(const std::string& what, std::size_t rows, std::size_t cols) const {
  return fmt::format(": {} {} of {}x{} to train, {} held out, {} to test", size(Split::train), what, rows, cols,
                     size(Split::heldout), size(Split::test));
}

}  // namespace hardgrad::tasks
