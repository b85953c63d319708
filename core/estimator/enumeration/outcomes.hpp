// The complete sets of choices (outcomes) of an enumerated episode, by example.
//
// In a sequential model an outcome is one leaf of the tree. If choices are independent, every step has its own leaves, and an
// outcome is one leaf of each step. There are options ^ steps of them, though only options x steps rows were run.
#pragma once

#include <map>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/estimator/slopes.hpp"

namespace hardgrad {

/// Sets of rows that no later rows continue, in the order of their creation.
template <class T>
std::vector<RowsPtr> leaf_sets(const Episode<T>& episode);

/// A cost of an enumerated run, per path: [R, 1], or [R, D] if columns were answered side by side.
template <class T>
Var<T> loss_of_paths(const Episode<T>& episode, const typename Episode<T>::Cost& cost);

/// Costs summed along the path to `rows` [R, 1], or [R, D] if columns were answered side by side, without the costs of the
/// root. Empty if there are none. `made` caches the sums.
template <class T>
Var<T> path_loss(const Episode<T>& episode, const RowsPtr& rows, std::map<const Rows*, Var<T>>& made);

/// One complete set of choices.
struct Outcome {
  std::vector<int> rows;  ///< the outcome's leaf in each leaf set
  double log_p = 0;       ///< log prior probability
  double log_q = 0;       ///< log posterior probability; 0 if the episode has no posterior
  double loss = 0;        ///< f: all costs, including those of the root
  double log_weight() const { return log_p - loss - log_q; }
};

template <class T>
class Outcomes {
 public:
  /// For an episode in which every choice was enumerated.
  explicit Outcomes(Episode<T>& episode) : Outcomes(episode, ends_of(episode), true) {}
  /// The same in independent parts: one for each leaf set, or for each of its columns. The first part has the costs of the
  /// root. The outcomes are the products of the parts' outcomes, so the parts suffice for an objective that is additive over
  /// them.
  static std::vector<Outcomes> parts(Episode<T>& episode);
  int examples() const { return static_cast<int>(of_.size()); }
  const std::vector<Outcome>& of(int example) const { return of_[example]; }
  /// The surrogate [1, 1] of the mean over the examples of an objective with these slopes, one `Slopes` per example.
  Var<T> surrogate(const std::vector<Slopes>& slopes) const;

 private:
  /// A leaf set (or one of its side-by-side columns), and the contribution of each leaf to an outcome that contains it.
  struct Leaves {
    RowsPtr rows;
    std::size_t column = 0;
    const std::vector<char>* padding_mask = nullptr;  // marks padding choices, to be skipped
    Var<T> log_p, log_q, loss;                        // [R, 1 or D]; log_q and loss may be empty
    std::size_t choice(int row) const { return row * log_p.cols() + column; }
  };
  static std::vector<Leaves> ends_of(Episode<T>& episode);
  Outcomes(Episode<T>& episode, std::vector<Leaves> leaves, bool with_root);
  Episode<T>& episode_;
  std::vector<Var<T>> root_;  // costs of the root [B, 1]
  std::vector<Leaves> leaves_;
  std::vector<std::vector<Outcome>> of_;
};

extern template class Outcomes<float>;
extern template class Outcomes<double>;

}  // namespace hardgrad
