// hardgrad.test: the verification of `hardgrad test`, of registered estimators and of those that are written in Python.
#pragma once

#include <pybind11/pybind11.h>

namespace hardgrad::python {

void declare_test(pybind11::module_& module);

}  // namespace hardgrad::python
