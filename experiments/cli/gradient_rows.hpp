// The choices and losses of a run's rows, as arrays for a gradient's file.
#pragma once

#include "core/choice/episode.hpp"
#include "experiments/storage/gradient.hpp"

namespace hardgrad::cli {

enum class Described {
  rows,      ///< the choices, losses and parameters of every final row
  examples,  ///< logits of the examples: each step branched from them separately, so that no row has all steps
  nothing
};

/// Fills the fields that have steps or rows.
template <class T>
Described describe_rows(Episode<T>& episode, storage::GradientDump<T>& dump);

}  // namespace hardgrad::cli
