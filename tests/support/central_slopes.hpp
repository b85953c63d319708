// The gradient of a number in a model's parameters, by central differences.
#pragma once

#include <vector>

#include "core/autodiff/parameter.hpp"

namespace hardgrad::testing {

/// [set.size()] slopes of value() in the set's order; each parameter is moved by 1e-5 both ways and restored.
template <class Value>
std::vector<double> central_slopes(ParameterSet<double>& set, const Value& value) {
  std::vector<double> slopes;
  for (auto& p : set)
    for (auto& x : p.value) {
      const double at = x, h = 1e-5;
      x = at + h;
      const double above = value();
      x = at - h;
      slopes.push_back((above - value()) / (2 * h));
      x = at;
    }
  return slopes;
}

}  // namespace hardgrad::testing
