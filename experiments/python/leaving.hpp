// Work without Python's lock (the GIL), and what ends it: Ctrl-C and the like.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "experiments/support/stop.hpp"

namespace hardgrad::python {

/// An exception of Python other than an error: KeyboardInterrupt, SystemExit. It is not a std::exception, so that no check
/// takes it for its failure.
struct Leaving {
  std::shared_ptr<pybind11::error_already_set> exception;
};

/// Calls f(), which may call Python. Exceptions are passed on: errors as they are, the rest as Leaving.
template <class F>
auto leaving(F f) {
  try {
    return f();
  } catch (pybind11::error_already_set& raised) {
    const pybind11::gil_scoped_acquire gil;
    if (raised.matches(PyExc_Exception)) throw;
    throw Leaving{std::make_shared<pybind11::error_already_set>(raised)};
  }
}

/// Calls f() without the GIL.
template <class F>
void without_gil(F f) {
  try {
    const pybind11::gil_scoped_release released;
    f();
  } catch (const Leaving& leaving) {
    throw pybind11::error_already_set(*leaving.exception);
  }
}

/// Polls Python's signal handlers (Ctrl-C) at intervals. Leaving if one raises an exception.
inline Stop pending_signals() {
  using Clock = std::chrono::steady_clock;
  const auto next = std::make_shared<std::atomic<Clock::time_point>>(Clock::now());
  return [next] {
    const auto now = Clock::now();
    if (auto before = next->load(); now < before || !next->compare_exchange_strong(before, now + std::chrono::milliseconds(50)))
      return false;
    const pybind11::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw Leaving{std::make_shared<pybind11::error_already_set>()};
    return false;
  };
}

}  // namespace hardgrad::python
