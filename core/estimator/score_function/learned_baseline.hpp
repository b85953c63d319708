// Learned functions of the network's state when it asks: a baseline C, and a critic as a baseline of returns, with generalised
// advantages.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/episode.hpp"
#include "core/choice/structure.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/nn/layers.hpp"

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

/// C(state) of a network with one layer of tanh units; the state is detached. Parameters: NAME.{hidden,out}.{weight,bias}.
template <class T>
class LearnedBaseline {
 public:
  LearnedBaseline() = default;
  LearnedBaseline(ParameterSet<T>& set, const std::string& name, const Structure& structure, std::size_t units, Key init)
      : hidden_(set, name + ".hidden", structure.state_width(), units, init),
        out_(set, name + ".out", units, std::max(1, structure.most_columns()), init) {}

  /// [R, columns] C at the rows of a step's choice; columns: 1, or D if columns have separate costs.
  Var<T> at(const typename Episode<T>::Step& step, std::size_t columns) const {
    const auto state =
        gather_rows(state_of(step.question, hidden_.weight->value.shape()[1]), std::span<const int>(step.choice.rows->parent));
    const auto value = out_(tanh(hidden_(state)));
    return columns < value.cols() ? slice_columns(value, 0, columns) : value;
  }

 private:
  Linear<T> hidden_, out_;
};

/// V(state), with parameters critic.{hidden,out}.{weight,bias}.
template <class T>
class Critic {
 public:
  Critic() = default;
  Critic(ParameterSet<T>& set, const Structure& structure, std::size_t width, Key init)
      : value_(set, "critic", structure, width, init) {}

  struct Judged {
    std::vector<std::vector<double>> advantage;  ///< [T] of each question's rows, in losses
    Var<T> loss;  ///< [1, 1] the critic's own: the mean square of V - G, summed over the questions
  };
  /// With the reward-to-go G_t of each sample, c_t the costs between questions t and t + 1, and V = 0 after the last question:
  ///   A_t = sum_(s >= t) lambda^(s - t) (c_s + V_(s+1) - V_s)          lambda = 1: G_t - V_t
  /// Schulman et al. 2016, High-dimensional continuous control using generalized advantage estimation, without a discount.
  Judged judge(Sampled<T>& sampled, double lambda) const {
    auto& tape = sampled.episode().tape();
    Judged judged{{}, tape.constant(1, 1)};
    for (int t = 0; t < sampled.steps(); ++t) {
      auto error = sampled.returns(t, Credit::reward_to_go);  // G - V
      const std::size_t D = sampled.columns(t, Credit::reward_to_go);
      const auto& step = sampled.episode().steps()[t];
      const auto& parent = step.choice.rows->parent;
      const auto value = value_.at(step, D);
      const auto wanted = tape.constant(value.rows(), D);
      for (std::size_t i = 0; i < error.size(); ++i) {
        const bool chooses = step.question.chooses(parent[i / D]);
        const T v = value.value().data[i];
        tape.mutable_value(wanted).data[i] = chooses ? static_cast<T>(error[i]) : v;  // no loss after the end
        if (chooses) error[i] -= static_cast<double>(v);
      }
      judged.loss = add(judged.loss, sum(square(subtract(value, wanted)), 1.0 / static_cast<double>(error.size())));
      judged.advantage.push_back(std::move(error));
    }
    if (lambda < 1) {
      std::vector<double> ahead(sampled.rows());  // A_(t+1)
      const auto error = judged.advantage;        // G_t - V_t
      for (std::size_t t = error.size(); t-- > 0;)
        for (std::size_t r = 0; r < ahead.size(); ++r)
          judged.advantage[t][r] = ahead[r] = error[t][r] - (t + 1 < error.size() ? error[t + 1][r] : 0) + lambda * ahead[r];
    }
    return judged;
  }
  /// Why `lambda` < 1 does not fit; empty if it does.
  static std::string why_not(double lambda, const Structure& structure) {
    if (lambda == 1) return "";
    if (structure.most_columns() > 1) return "lambda below 1 needs one choice at a time, not several columns: take lambda=1";
    if (structure.steps() <= 1) return "";
    const bool in_turn =
        !structure.independent() && std::none_of(structure.sites.begin(), structure.sites.end(),
                                                 [](const auto& s) { return s.scope == DependenceScope::own_column; });
    return in_turn ? "" : "lambda below 1 needs choices that feed later ones: take lambda=1";
  }

 private:
  LearnedBaseline<T> value_;
};

}  // namespace hardgrad
