#include "experiments/tasks/digits.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/support/error.hpp"
#include "experiments/support/place.hpp"
#include "experiments/tasks/drawn_digits.hpp"
#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {
namespace {

LabelledImages read_mnist(const std::string& folder, const std::string& part, bool labelled) {
  const auto find = [&](const std::string& stem, const std::string& kind) {
    for (const auto* dot : {"-", "."})
      for (const auto* ending : {".gz", ""}) {
        auto path = fmt::format("{}/{}-{}{}{}-ubyte{}", folder, part, stem, dot, kind, ending);
        if (place_of(path) != Place::nothing) return path;
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

}  // namespace

std::vector<ParameterInfo> digit_parameters() {
  using P = ParameterInfo;
  return {P::text("path", "", "folder of MNIST's four files; empty: drawn digits"),
          P::integer("size", 28, 8, 256, "height and width of drawn digits, in pixels"),
          P::integer("examples", 2000, 10, 1e6, "drawn digits for training; validation and test have a quarter each"),
          P::integer("heldout", 5000, 0, 1e7, "last images of the training file, held out for validation (path)"),
          P::integer("limit", 0, 0, 1e7, "most training images: the first ones; 0: all")};
}

Digits read_digits(const std::string& task, const Settings& settings, Key key, bool labelled) {
  const auto path = find_input(settings.text("path"));
  if (path.empty()) {
    const auto examples = static_cast<std::size_t>(settings.integer("examples"));
    const auto heldout = std::max<std::size_t>(1, examples / 4);
    return {drawn(examples + heldout, settings.integer("size"), key / "train"),
            drawn(heldout, settings.integer("size"), key / "test"), heldout, "generated"};
  }
  if (place_of(path) != Place::folder)
    throw InputError(
        fmt::format("{}: is not a folder, neither here nor below the folder in HARDGRAD_DATA; path must be a folder "
                    "with MNIST's four files",
                    path));
  Digits result{read_mnist(path, "train", labelled), read_mnist(path, "t10k", labelled),
                static_cast<std::size_t>(settings.integer("heldout")), path};
  const auto &train = result.train.images, &test = result.test.images;
  if (train.rows != test.rows || train.cols != test.cols)
    throw InputError(fmt::format("{}: training images are {}x{}, but test images {}x{}", path, train.rows, train.cols,
                                 test.rows, test.cols));
  if (result.heldout >= train.count)
    throw UsageError(
        fmt::format("{}: heldout must be below the number of training images, {}, got {}", task, train.count, result.heldout));
  return result;
}

}  // namespace hardgrad::tasks
