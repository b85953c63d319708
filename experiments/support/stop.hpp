// Requests to stop long work.
#pragma once

#include <functional>

namespace hardgrad {

/// Thrown from work after a request to stop.
struct Interrupted {};

/// Returns whether to stop. Called between pieces of work, from any thread; empty: never stop.
using Stop = std::function<bool()>;

/// Throws Interrupted if `stop` returns true.
inline void poll(const Stop& stop) {
  if (stop && stop()) throw Interrupted{};
}

/// `poll` as the callback of a Tape.
inline std::function<void()> polling(const Stop& stop) {
  if (!stop) return {};
  return [stop] { poll(stop); };
}

}  // namespace hardgrad
