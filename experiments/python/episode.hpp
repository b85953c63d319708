// Networks that run in Python and make choices, which may feed later ones.
#pragma once

#include <pybind11/pybind11.h>

namespace hardgrad::python {

void declare_episode(pybind11::module_& module);

}  // namespace hardgrad::python
