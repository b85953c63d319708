// The input of learned baselines and control variates.
#pragma once

#include "core/autodiff/rearrange.hpp"
#include "core/choice/episode.hpp"

namespace hardgrad {

/// The state [R, width] of a question, detached from the network. One baseline network serves all sites; the states of narrower
/// sites are padded with zeros.
template <class T>
Var<T> state_of(const Question<T>& question, std::size_t width) {
  auto& tape = *question.site.state.tape;
  const auto state = tape.detach(question.site.state);
  if (state.cols() == width) return state;
  return concat_columns({state, tape.constant(state.rows(), width - state.cols())});
}

}  // namespace hardgrad
