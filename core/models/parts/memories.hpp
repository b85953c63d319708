// Memories of a run's states: N cells of W numbers for each, rows of a matrix [n N, W] (memory.hpp).
#pragma once

#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad {

/// The memories [n N, W] of the states before a choice, on the states after it.
template <class T>
Var<T> memories_after(const States<T>& i, Var<T> memories, std::size_t cells) {
  return reshape(Var<T>(i.after(reshape(memories, cells * memories.cols()))), memories.cols());
}

}  // namespace hardgrad
