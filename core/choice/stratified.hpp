// K samples per example from stratified uniform numbers: one in each stratum (j / K, (j + 1) / K).
#pragma once

#include <vector>

#include "core/choice/episode.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// Answers by the inverse distribution function at u_k = (stratum of sample k + v_k) / K. Rows (b, k) as SampleHandler's.
///
/// The strata are permuted anew for every choice and every column (a Latin hypercube). So u_k is uniform given all earlier
/// choices of sample k, and each path alone has the model's distribution. The offset v_k in (0, 1) is drawn for each sample
/// (Offsets::own, stratified) or once for all samples of the example (Offsets::common, systematic). An option depends only on
/// the interval of (0, 1) that holds v_k, so that interval is drawn, as a category.
template <class T>
class StratifiedHandler final : public Handler<T> {
 public:
  enum class Offsets { own, common };
  StratifiedHandler(int samples, Offsets offsets, Randomness& random, const std::vector<std::uint32_t>& id)
      : samples_(samples), offsets_(offsets), random_(random), id_(id) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  Choice<T> numbers(Tape<T>& tape, const Question<T>& question, const RowsPtr& rows);
  std::vector<int> deal(std::uint32_t example, std::uint32_t step, std::uint32_t column);
  int samples_;
  Offsets offsets_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
};

}  // namespace hardgrad
