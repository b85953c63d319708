// A model whose logits are given and whose loss somebody else works out: what stands between a function and the estimators.
//
//   z_d ~ Cat(softmax(logits_d)), d = 1..D;   cost f(z), shared by the columns
//
// One site `choice` of D columns. Parameter: logits [E D, S] of E examples. Field of the batch: "example" [B], whose logits.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/models/model.hpp"

namespace hardgrad::python {

/// Logits of E examples with D columns of S options.
template <class T>
struct GivenLogits {
  std::size_t examples = 0, columns = 0, options = 0;
  std::vector<T> value = {};    ///< [E D, S], 0 beyond a cell's own options
  std::vector<int> count = {};  ///< [E D] options of each cell: -inf at the end of its logits are none

  /// From E D S numbers. UsageError that names the first that is no logit, as an array of `rank` axes has it.
  GivenLogits(const T* numbers, std::size_t examples, std::size_t columns, std::size_t options, int rank);
};

/// One run: what was chosen, by rows of which examples, and what it cost.
template <class T>
struct Answered {
  Choice<T> choice;
  std::vector<int> example;  ///< [R]
  Var<T> loss;               ///< [R, 1]
};

template <class T>
class OwnLoss final : public Model<T> {
 public:
  /// Loss [R, 1] of rows that chose; example [R] says whose they are.
  using Loss = std::function<Var<T>(Tape<T>&, const Choice<T>&, std::span<const int> example)>;
  /// `state` [E, C]: what learned baselines see of an example; without columns, a 1. Runs are noted in `answered`, if there is
  /// one, and their losses watched (Tape::watch).
  OwnLoss(GivenLogits<T> given, std::vector<T> state, Loss loss, std::vector<Answered<T>>* answered = nullptr);

  const Structure& structure() const override { return structure_; }
  void run(const Batch& batch, Episode<T>& episode) const override;
  typename Model<T>::Asked asked(const Batch& batch, std::size_t site, int example) const override;
  /// All examples, by ids [E]; without any, example e has id e.
  Batch batch(std::vector<std::uint32_t> ids = {}) const;
  /// How many there are.
  T examples() const { return static_cast<T>(given_.examples); }

 private:
  GivenLogits<T> given_;
  std::vector<T> state_;
  Loss loss_;
  std::vector<Answered<T>>* answered_;
  const Parameter<T>* logits_;
  Structure structure_;
};

extern template struct GivenLogits<float>;
extern template struct GivenLogits<double>;
extern template class OwnLoss<float>;
extern template class OwnLoss<double>;

}  // namespace hardgrad::python
