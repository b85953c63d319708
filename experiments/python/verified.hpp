// hardgrad.test: the verification of `hardgrad test`, for registered estimators and those written in Python.
#pragma once

#include <pybind11/pybind11.h>

namespace hardgrad::python {

void declare_test(pybind11::module_& module);

}  // namespace hardgrad::python
