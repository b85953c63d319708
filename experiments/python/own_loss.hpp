// A model with given logits and an external loss: it connects a function with the estimators.
//
//   z_d ~ Cat(softmax(logits_d)), or a subset of k options (choice/subsets.hpp), d = 1..D;   cost f(z), shared by the columns
//
// One site `choice` of D columns. Parameter: logits [E D, S] of E examples. Field of the batch: "example" [B], the example
// whose logits a row uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/choice/choice.hpp"
#include "core/models/model.hpp"

namespace hardgrad::python {

/// Logits of E examples with D columns of S options.
template <class T>
struct GivenLogits {
  std::size_t examples = 0, columns = 0, options = 0;
  int subset_size = 0;          ///< options of each subset; 0: choices are one option each, not subsets
  std::vector<T> value = {};    ///< [E D, S], 0 for missing options
  std::vector<int> count = {};  ///< [E D] options of each cell, without the missing ones (-inf at the end of its logits)
  std::vector<T> behaviour = {}, reference = {};  ///< [E D, S] of these policies (policies.hpp); empty: none

  /// From E D S numbers. UsageError for the first invalid logit, at its place in an array of `rank` axes, and for a choice with
  /// too few options.
  GivenLogits(const T* numbers, std::size_t examples, std::size_t columns, std::size_t options, int subset_size, int rank);
  /// Those of the examples from `first` on.
  GivenLogits of_examples(std::size_t first, std::size_t count) const;
  /// The place of an entry in an array of `rank` axes, in words.
  std::string place(std::size_t entry, int rank) const;

 private:
  GivenLogits() = default;
};

/// The distribution of R D choices with `count` options each, as GivenLogits has them. logits: [R D, S].
template <class T>
DistributionPtr<T> distribution(Var<T> logits, std::vector<int> count, int columns, int subset_size);

/// The shape of hard options as Python sees them: [R, D], or [R, D, picks] of subsets.
inline std::vector<std::ptrdiff_t> shape_of_options(std::size_t rows, std::size_t columns, int subset_size) {
  std::vector<std::ptrdiff_t> shape{static_cast<std::ptrdiff_t>(rows), static_cast<std::ptrdiff_t>(columns)};
  if (subset_size > 0) shape.push_back(subset_size);
  return shape;
}

/// One run: the choices, the example of each row, and the loss.
template <class T>
struct Answered {
  Choice<T> choice;
  std::vector<int> example;  ///< [R]
  Var<T> loss;               ///< [R, 1]
  /// The policy, and the behaviour policy that drew the choices; null if it is none.
  DistributionPtr<T> policy = {}, behaviour = {};

  /// [R] off policy: the ratios of the policy's probability to the behaviour policy's.
  std::vector<T> ratios() const;
};

template <class T>
class OwnLoss final : public Model<T> {
 public:
  /// Loss [R, 1] of the rows' choices; example [R] is the example of each row.
  using Loss = std::function<Var<T>(Tape<T>&, const Choice<T>&, std::span<const int> example)>;
  /// `state` [E, C]: inputs of learned baselines for each example; without columns, a 1. Runs are appended to `answered`, if
  /// given, and their losses are watched (Tape::watch).
  OwnLoss(GivenLogits<T> given, std::vector<T> state, Loss loss, std::vector<Answered<T>>* answered = nullptr);

  const Structure& structure() const override { return structure_; }
  void run(const Batch& batch, Episode<T>& episode) const override;
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t site, int example) const override;
  /// All examples, with ids [E]; by default example e has id e.
  Batch batch(std::vector<std::uint32_t> ids = {}) const;
  /// From now on a positive loss is a UsageError (require_rewards).
  void take_rewards() { takes_rewards_ = true; }
  /// Number of examples.
  T examples() const { return static_cast<T>(given_.examples); }

 private:
  GivenLogits<T> given_;  // without the value, which is the parameter
  std::vector<T> state_;
  Loss loss_;
  bool takes_rewards_ = false;
  std::vector<Answered<T>>* answered_;
  const Parameter<T>* logits_;
  Structure structure_;
};

extern template DistributionPtr<float> distribution(Var<float>, std::vector<int>, int, int);
extern template DistributionPtr<double> distribution(Var<double>, std::vector<int>, int, int);
extern template struct GivenLogits<float>;
extern template struct GivenLogits<double>;
extern template struct Answered<float>;
extern template struct Answered<double>;
extern template class OwnLoss<float>;
extern template class OwnLoss<double>;

}  // namespace hardgrad::python
