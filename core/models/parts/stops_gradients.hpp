// Models that stop gradients on purpose: the gradient that they define is not the slope of their losses. A model may implement this
// interface besides Model. Its exact gradient by enumeration is defined as that of any model; only checks against differences
// of the losses do not apply.
#pragma once

#include <string>

namespace hardgrad {

struct StopsGradients {
  std::string stopped;  ///< the setting and its effect; empty: nothing is stopped
  virtual ~StopsGradients() = default;
};

}  // namespace hardgrad
