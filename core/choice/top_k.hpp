// Perturb-and-MAP for one or several of a choice's options: the k largest of logits plus Gumbel noise.
//
//   r = x + G,   the answer: the k options with the largest r
//
// They are k draws without replacement, each by the softmax of the options left (Plackett-Luce; Vieira 2014, Gumbel-max trick and
// weighted reservoir sampling). For k = 1 that is the softmax itself; for k > 1 it is SubsetDistribution::plackett_luce, not
// the conditional Poisson distribution.
#pragma once

#include <span>
#include <vector>

#include "core/choice/handlers.hpp"

namespace hardgrad {

/// r [R' D, S] of the choices that led to `rows`, differentiable in the logits. Nothing is added where there is one option.
template <class T>
Var<T> perturbed_logits(Tape<T>& tape, const Question<T>& question, const Rows& rows, Randomness& random,
                        const std::vector<std::uint32_t>& id);

/// [R' D] the number of options of the choices that led to `rows`, and of the options that they pick.
template <class T>
std::vector<int> options_of(const Question<T>& question, const Rows& rows);
template <class T>
std::vector<int> subset_size_of(const Question<T>& question, const Rows& rows);

/// The places of the largest x, as many as `to` has, ascending; the first of equal ones. -1 where there are fewer.
template <class Number>
void write_largest(std::span<const Number> x, std::span<int> to);

/// Answers with the k largest. `samples` rows per example. Keeps r, so that the same noise can be used again.
template <class T>
class TopKHandler final : public Handler<T> {
 public:
  TopKHandler(int samples, Randomness& random, const std::vector<std::uint32_t>& id)
      : samples_(samples), random_(random), id_(id) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;
  /// After the run, of each step.
  const std::vector<Var<T>>& perturbed() const { return perturbed_; }

 private:
  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  std::vector<Var<T>> perturbed_;
};

/// The same from r that are known: picks[r] of each row's first options[r]. `most`: the most picks of a choice.
template <class T>
ChosenOptions largest(Var<T> r, std::span<const int> options, std::span<const int> subset_size, int most);

}  // namespace hardgrad
