// What learned baselines and control variates look at.
#pragma once

#include "core/autodiff/rearrange.hpp"
#include "core/choice/episode.hpp"

namespace hardgrad {

/// The state [R, width] of a question, cut off from what made it. One network serves all sites: beyond a narrower site's own
/// numbers are zeros.
template <class T>
Var<T> state_of(const Question<T>& question, std::size_t width) {
  auto& tape = *question.site.state.tape;
  const auto state = tape.detach(question.site.state);
  if (state.cols() == width) return state;
  return concat_columns({state, tape.constant(state.rows(), width - state.cols())});
}

}  // namespace hardgrad
