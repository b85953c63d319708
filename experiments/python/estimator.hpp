// hardgrad.Estimator: an estimator that keeps its learned state, and this state as arrays.
#pragma once

#include <pybind11/pybind11.h>

namespace hardgrad::python {

void declare_estimator(pybind11::module_& module);

}  // namespace hardgrad::python
