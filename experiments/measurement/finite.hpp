// A non-finite loss, gradient or moment ends a measurement with an error that names it.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <span>

#include "core/autodiff/parameter.hpp"
#include "core/support/error.hpp"

namespace hardgrad::measurement {

/// An estimate, or a moment of it, is infinite or not a number. Exit status 1.
struct NotFinite : Error {
  explicit NotFinite(const std::string& message) : Error(1, message) {}
};

inline void require_finite(double value, const char* what) {
  if (!std::isfinite(value)) throw NotFinite(fmt::format("{} is {}, not a finite number", what, value));
}

/// Checks a gradient in the parameters of a set; the error names the first entry that is not finite.
template <class T>
void require_finite(std::span<const double> gradient, const ParameterSet<T>& parameters) {
  for (const auto& p : parameters)
    for (std::size_t i = 0; i < p.value.size(); ++i)
      if (const double g = gradient[p.offset + i]; !std::isfinite(g))
        throw NotFinite(fmt::format("entry {} of the gradient of {} is {}, not a finite number", i, p.name, g));
}

}  // namespace hardgrad::measurement
