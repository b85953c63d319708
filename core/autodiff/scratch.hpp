// A matrix in the tape's memory, with no value yet.
#pragma once

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// [rows, cols], not initialised; it lives as long as the tape's values.
template <class T>
MatrixView<T> scratch_matrix(Tape<T>& tape, std::size_t rows, std::size_t cols) {
  return {tape.template scratch<T>(rows * cols).data(), rows, cols};
}

}  // namespace hardgrad
