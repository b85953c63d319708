// Statistics of gradients that are drawn in Python.
#pragma once

#include <pybind11/pybind11.h>

namespace hardgrad::python {

void declare_replicates(pybind11::module_& module);

}  // namespace hardgrad::python
