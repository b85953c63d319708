// Base of tasks whose examples are made on demand from their ids.
#pragma once

#include <array>
#include <cstdint>

#include "core/support/error.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

/// The settings `examples`, `heldout` and `test` are the sizes of the splits.
class OnDemand : public Task {
 public:
  std::size_t size(Split split) const override { return sizes_[static_cast<std::size_t>(split)]; }

 protected:
  explicit OnDemand(const Settings& settings) {
    for (std::size_t i = 0; const char* name : {"examples", "heldout", "test"})
      sizes_[i++] = static_cast<std::size_t>(settings.integer(name));
  }
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
