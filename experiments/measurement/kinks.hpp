// Kinks and jumps of an estimate in its continuous noise, so that quadratures can be split there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/random/randomness.hpp"

namespace hardgrad::measurement {

/// The numbers at which each draw has a kink or a jump.
class Kinks {
 public:
  void add(const Draw& where, double number);
  std::span<const double> of(const Draw& where) const;
  bool empty() const { return numbers_.empty(); }

 private:
  std::map<std::array<std::uint32_t, 5>, std::vector<double>> numbers_;
};

/// An estimate's gradient [P] on a source of noise.
using Estimating = std::function<std::span<const double>(Randomness&)>;

/// Kinks along one draw at a time, with all other draws fixed: once in each stretch between the known edges, for each discrete
/// outcome. A kink whose place depends on other draws is found at only one of its places. Such a result does not help, and the
/// quadrature's error shows it. Ends early after `most` estimates.
Kinks find_kinks(const Estimating& estimate, double most);

}  // namespace hardgrad::measurement
