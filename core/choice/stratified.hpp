// K samples of an example whose uniform numbers spread evenly over (0, 1): one in every stratum ((j, j + 1) / K).
#pragma once

#include <vector>

#include "core/choice/episode.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// Answers a site by the inverse distribution function at u_k = (stratum of sample k + v_k) / K, rows (b, k) as
/// SampleChooser's. Strata are dealt to the samples anew at every choice, and in every column (a Latin hypercube), so that u_k
/// is uniform given all that the sample chose before: every path by itself is a true draw. v_k is a number in (0, 1) of each
/// sample's own (stratified), or one for all samples of the example (systematic). Only the piece of (0, 1) it falls into
/// matters, and that is what is drawn.
template <class T>
class StratifiedChooser final : public Chooser<T> {
 public:
  enum class Offsets { own, common };
  StratifiedChooser(int samples, Offsets offsets, Randomness& random, const std::vector<std::uint32_t>& id)
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
