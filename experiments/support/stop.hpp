// How long work is asked to stop.
#pragma once

#include <functional>

namespace hardgrad {

/// Thrown out of work that was asked to stop.
struct Interrupted {};

/// Says whether to stop. Asked between pieces of work, from any thread; empty: never.
using Stop = std::function<bool()>;

/// Throws Interrupted if `stop` says so.
inline void poll(const Stop& stop) {
  if (stop && stop()) throw Interrupted{};
}

/// `poll`, as what a Tape pauses for.
inline std::function<void()> polling(const Stop& stop) {
  if (!stop) return {};
  return [stop] { poll(stop); };
}

}  // namespace hardgrad
