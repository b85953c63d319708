// Images of digits for tasks: drawn digits, or files in MNIST's format (e.g. also Fashion-MNIST).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "core/registry/fields.hpp"
#include "experiments/tasks/loaders/arrays.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

/// Images and their labels, one byte each; no labels if they were not requested.
struct LabelledImages {
  IdxImages images;
  std::string labels;
};

/// Images of one size for training, validation and test.
struct Digits {
  std::array<LabelledImages, 3> of_split;
  std::string provenance;  ///< "generated" or the path
};

constexpr int digit_classes = 10;

/// What `read_digits` reads, and the most images to train on.
struct DigitConfig {
  std::string path;
  int size = 28;
  std::size_t examples = 2000, heldout = 5000, limit = 0;

  void declare(Fields& field,
               const std::string& of_path = "folder of MNIST's four files, or of Fashion-MNIST's; empty: drawn digits") {
    field.file(path, "path", of_path);
    field(size, "size", 8, 256, "height and width of drawn digits, in pixels");
    field(examples, "examples", 10, 1e6, "drawn digits for training; validation and test have a quarter each");
    field(heldout, "heldout", 0, 1e7, "last images of the training file, held out for validation (path)");
    field(limit, "limit", 0, 1e7, "most training images: the first ones; 0: all");
  }
};
/// Reads or draws digits. InputError; UsageError in the name of `task`.
Digits read_digits(const std::string& task, const DigitConfig& config, Key key, bool labelled);

/// Base of tasks over images whose bits, places or noise are drawn from a key: in training, anew in every epoch.
class DigitTask : public Task {
 public:
  std::size_t size(Split split) const override { return of(split).images.count; }
  std::string provenance() const override { return provenance_; }
  Batch batch(Split split, const std::vector<int>& indices) const override { return drawn(split, indices, key_); }
  Batch training_batch(const std::vector<int>& indices, Key epoch) const override {
    return drawn(Split::train, indices, epoch);
  }

 protected:
  /// Trains on the first `limit` images; 0: on all.
  DigitTask(Digits digits, std::size_t limit, Key key);
  virtual Batch drawn(Split split, const std::vector<int>& indices, Key key) const = 0;

  const LabelledImages& of(Split split) const { return of_split_[static_cast<std::size_t>(split)]; }
  /// The id of an image, unique over all splits.
  std::uint32_t id_of(Split split, int index) const;
  /// ": N images of HxW to train, N held out, N to test"
  std::string counts(const std::string& what, std::size_t rows, std::size_t cols) const;

  Key key_;
  std::string provenance_;

 private:
  std::array<LabelledImages, 3> of_split_;
  std::array<std::size_t, 3> first_id_{};
};

}  // namespace hardgrad::tasks
