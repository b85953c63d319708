// Networks that are run in Python and ask at every choice: their choices may feed later ones.
#pragma once

#include <pybind11/pybind11.h>

namespace hardgrad::python {

void declare_episode(pybind11::module_& module);

}  // namespace hardgrad::python
