// Subsets of exactly k of a choice's options. k is the same for all choices, or by choice. Two laws:
//
//   conditional_poisson:  p(S) = prod_{i in S} exp(x_i) / Z, x the logits (Ahmed, Zeng, Niepert & Van den Broeck 2023, SIMPLE: a
//                         gradient estimator for k-subset sampling, eq. 1). Density, marginals, entropy and draws are exact, in
//                         O(S k) for each choice (autodiff/subsets.hpp).
//   plackett_luce:        S are the first k of draws without replacement, each by the softmax of the options left, without their
//                         order (autodiff/subsets.hpp). Density exact in O(2^k k); marginals and entropy by enumeration.
//
// For k = 1 both are a categorical choice.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/choice/distribution.hpp"
#include "core/support/named.hpp"
#include "core/support/views.hpp"

namespace hardgrad {

/// Options of each subset.
struct SubsetSize {
  SubsetSize(int k) : most(k) {}  // NOLINT: a number stands for itself
  SubsetSize(int most, std::vector<int> by_choice) : most(most), by_choice(std::move(by_choice)) {}
  int most;
  std::vector<int> by_choice = {};  ///< [R D] k of each choice, 1 to `most`; empty: `most`
};

enum class SubsetDistribution { conditional_poisson, plackett_luce };
constexpr Named<SubsetDistribution> subset_distributions[] = {{"conditional_poisson", SubsetDistribution::conditional_poisson},
                                                              {"plackett_luce", SubsetDistribution::plackett_luce}};

template <class T>
class Subsets : public Distribution<T> {
 public:
  const SiteKind& kind() const override { return SiteKind::subsets; }
  std::vector<std::pair<std::string_view, Var<T>>> parameters() const override { return {{"logits", logits_}}; }
  bool chooses(std::size_t row) const override;
  std::vector<double> parameters_at(std::size_t row, std::size_t column) const override;
  Var<T> logits() const override { return logits_; }
  const std::vector<int>& options() const override { return options_; }
  int subset_size() const override { return subset_size_.most; }
  int subset_size_of(std::size_t choice) const override { return each()[choice]; }
  double support_size(std::size_t choice) const override;
  std::vector<double> log_p_of_answers(std::size_t choice) const override;
  /// Subsets are ordered by their options, as words of ascending letters.
  Choice<T> unrank(const RowsPtr& rows, const std::vector<int>& index) const override;

  /// [R D, S] probability that each option is picked. Computed once, on demand.
  Var<T> marginals() const;

  /// As Randomness has it: the law's own numbers, or one categorical draw among all subsets.
  Choice<T> sample(Tape<T>& tape, const RowsPtr& rows, const Noise& noise) const override;
  Choice<T> mode(Tape<T>& tape, const RowsPtr& rows) const override;  ///< the k largest logits, by both laws
  Choice<T> mean(const RowsPtr& rows) const override;
  Choice<T> enumerate(Tape<T>& tape, const RowsPtr& asking, int step, const Visits& visits) const override;
  Var<T> log_probability(const Choice<T>& choice) const override;
  std::vector<double> squared_scores(const Choice<T>& choice) const override;
  Var<T> entropy() const override;

 protected:
  /// logits [R D, S]; options [R D]: choice c picks among options 0 .. options[c] - 1 whose logit is above -inf. If they are k or
  /// fewer, all are picked: nothing is chosen (a finished row). UsageError where no option is possible, or k is 0.
  Subsets(Var<T> logits, std::vector<int> options, SubsetSize subset_size, int columns);

  SubsetSizes each() const {
    return subset_size_.by_choice.empty() ? SubsetSizes(subset_size_.most) : SubsetSizes(subset_size_.by_choice);
  }
  /// The possible options of a choice, ascending.
  std::vector<int> possible(std::size_t choice) const;
  /// All subsets of a choice, one after the other [answers, most k]. NotExact if they are too many.
  std::vector<int> listed(std::size_t choice) const;

  /// [N, 1] of the subsets picked [N, most k] of the rows `from` [N] of logits x, with so many options and picks.
  virtual Var<T> log_p(Var<T> x, std::span<const int> options, SubsetSizes subset_size, std::span<const int> from,
                       std::span<const int> picked) const = 0;
  virtual Var<T> find_marginals() const = 0;
  /// [R D, 1]
  virtual Var<T> entropies() const = 0;
  /// Draws the subset of `from[c]` for each c, with the numbers at where(c); -1 beyond its options.
  virtual std::vector<int> draw(const std::vector<int>& from, Randomness& random,
                                const std::function<Draw(std::size_t)>& where) const = 0;

  Var<T> logits_;
  std::vector<int> options_;

 private:
  /// The index-th subset of these options; `to` [most k] beyond `subset_size` of them is -1.
  void write_subset(std::span<const int> possible, int subset_size, std::size_t index, std::span<int> to) const;
  SubsetSize subset_size_;
  mutable Var<T> marginals_;
};

/// As the constructor. UsageError for more options than a law can pick.
template <class T>
std::shared_ptr<const Subsets<T>> subsets(Var<T> logits, std::vector<int> options, SubsetSize subset_size, int columns = 1,
                                          SubsetDistribution law = SubsetDistribution::conditional_poisson);

extern template class Subsets<float>;
extern template class Subsets<double>;
extern template std::shared_ptr<const Subsets<float>> subsets(Var<float>, std::vector<int>, SubsetSize, int,
                                                              SubsetDistribution);
extern template std::shared_ptr<const Subsets<double>> subsets(Var<double>, std::vector<int>, SubsetSize, int,
                                                               SubsetDistribution);

// The laws, each in its file.

template <class T>
std::shared_ptr<const Subsets<T>> conditional_poisson(Var<T> logits, std::vector<int> options, SubsetSize subset_size,
                                                      int columns);
/// UsageError for more than kernels::PlackettLuce::most_picks.
template <class T>
std::shared_ptr<const Subsets<T>> plackett_luce(Var<T> logits, std::vector<int> options, SubsetSize subset_size, int columns);

extern template std::shared_ptr<const Subsets<float>> conditional_poisson(Var<float>, std::vector<int>, SubsetSize, int);
extern template std::shared_ptr<const Subsets<double>> conditional_poisson(Var<double>, std::vector<int>, SubsetSize, int);
extern template std::shared_ptr<const Subsets<float>> plackett_luce(Var<float>, std::vector<int>, SubsetSize, int);
extern template std::shared_ptr<const Subsets<double>> plackett_luce(Var<double>, std::vector<int>, SubsetSize, int);

}  // namespace hardgrad
