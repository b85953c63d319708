// The complete sets of choices of an enumerated episode, example by example.
//
// A sequential model's outcome is one leaf of its tree. Where choices are independent every step has leaves of its
// own, and an outcome is one leaf of each step: options ^ steps of them, though only options x steps rows were run.
#pragma once

#include <map>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/estimator/slopes.hpp"

namespace hardgrad {

/// Sets of rows nothing continues, in the order they were made.
template <class T>
std::vector<RowsPtr> leaf_sets(const Episode<T>& episode);

/// A cost of an enumerated run as its paths incur it: [R, 1], or [R, D] where columns answered side by side.
template <class T>
Var<T> loss_of_paths(const Episode<T>& episode, const typename Episode<T>::Cost& cost);

/// Costs summed along the way to `rows` [R, 1], or [R, D] where columns answered side by side; those of the root left out.
/// Empty if there are none. `made` keeps what was summed.
template <class T>
Var<T> path_loss(const Episode<T>& episode, const RowsPtr& rows, std::map<const Rows*, Var<T>>& made);

/// One complete set of choices.
struct Outcome {
  std::vector<int> rows;  ///< the leaf it takes of each leaf set
  double log_p = 0;       ///< log prior probability
  double log_q = 0;       ///< the same under the posterior; 0 if the episode has none
  double loss = 0;        ///< f: all costs, those of the root too
  double log_weight() const { return log_p - loss - log_q; }
};

template <class T>
class Outcomes {
 public:
  /// Of an episode in which every choice was enumerated.
  explicit Outcomes(Episode<T>& episode) : Outcomes(episode, ends_of(episode), true) {}
  /// The same cut into independent parts, one for each leaf set, or column of it; the costs of the root are the first one's.
  /// Products of the parts' outcomes are the outcomes, so an objective that adds up over independent parts needs no more than
  /// these.
  static std::vector<Outcomes> parts(Episode<T>& episode);
  int examples() const { return static_cast<int>(of_.size()); }
  const std::vector<Outcome>& of(int example) const { return of_[example]; }
  /// The surrogate [1, 1] of the mean over the examples of an objective with these slopes, one per example.
  Var<T> surrogate(const std::vector<Slopes>& slopes) const;

 private:
  /// What ends together: the rows (of columns side by side, one column of them), and what each adds to an outcome that takes
  /// it.
  struct Leaves {
    RowsPtr rows;
    std::size_t column = 0;
    const std::vector<char>* spare = nullptr;  // cells that are none
    Var<T> log_p, log_q, loss;                 // [R, 1 or D]; log_q and loss empty if there are none
    std::size_t cell(int row) const { return row * log_p.cols() + column; }
  };
  static std::vector<Leaves> ends_of(Episode<T>& episode);
  Outcomes(Episode<T>& episode, std::vector<Leaves> leaves, bool with_root);
  Episode<T>& episode_;
  std::vector<Var<T>> root_;  // costs [B, 1]
  std::vector<Leaves> leaves_;
  std::vector<std::vector<Outcome>> of_;
};

extern template class Outcomes<float>;
extern template class Outcomes<double>;

}  // namespace hardgrad
