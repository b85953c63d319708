// What the rows of a run chose and paid, as the arrays of a gradient's file.
#pragma once

#include "core/choice/episode.hpp"
#include "experiments/storage/gradient.hpp"

namespace hardgrad::cli {

enum class Described {
  rows,      ///< the choices, losses and parameters of every final row
  examples,  ///< logits of the examples: steps branched from these one by one, so that no row lives through them all
  nothing
};

/// Fills the fields that have steps or rows.
template <class T>
Described describe_rows(Episode<T>& episode, storage::GradientDump<T>& dump);

}  // namespace hardgrad::cli
