// Base of tasks whose examples are made on demand from their ids.
#pragma once

#include <array>
#include <cstdint>

#include "core/support/error.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

/// The sizes of the splits.
struct SplitSizes {
  std::size_t examples, heldout, test;

  /// `what`: the examples, in the plural; `of_test`: those of the test, if not "test <what>".
  void declare(Fields& field, const std::string& what, const std::string& of_test = "") {
    field(examples, "examples", 1, 1e8, "training " + what + ", made on demand");
    field(heldout, "heldout", 1, 1e6, what + " held out for validation");
    field(test, "test", 1, 1e6, of_test.empty() ? "test " + what : of_test);
  }
};

class OnDemand : public Task {
 public:
  std::size_t size(Split split) const override { return sizes_[static_cast<std::size_t>(split)]; }

 protected:
  explicit OnDemand(const SplitSizes& sizes) : sizes_{sizes.examples, sizes.heldout, sizes.test} {}
  /// The id of an example, unique over all splits.
  std::uint32_t id_of(Split split, int index) const {
    if (index < 0 || static_cast<std::size_t>(index) >= size(split)) throw Bug("no such example");
    const auto before = split == Split::train ? 0 : split == Split::heldout ? sizes_[0] : sizes_[0] + sizes_[1];
    return static_cast<std::uint32_t>(before + static_cast<std::size_t>(index));
  }

 private:
  std::array<std::size_t, 3> sizes_{};
};

}  // namespace hardgrad::tasks
