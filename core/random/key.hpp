// Keys of random streams. A key is a 64-bit hash of names and numbers and does not depend on the order of execution.
#pragma once

#include <cstdint>
#include <string_view>

namespace hardgrad {

class Key {
 public:
  explicit Key(std::uint64_t root_seed = 0);
  /// The key of a named substream, e.g. key / "train" / 17.
  Key operator/(std::string_view name) const;
  Key operator/(std::uint64_t number) const;
  std::uint64_t value() const { return value_; }

 private:
  struct Raw {};
  Key(Raw, std::uint64_t value) : value_(value) {}
  std::uint64_t value_;
};

}  // namespace hardgrad
