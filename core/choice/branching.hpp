// Samples whose every choice is also seen taken otherwise.
#pragma once

#include <vector>

#include "core/choice/episode.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// Keeps for every sample one row that is drawn, and rows that left it at one choice (for each option it did not take)
/// and from then on take what it takes. Draws as SampleChooser's. For models whose choices go on from the last one.
template <class T>
class BranchingChooser final : public Chooser<T> {
 public:
  struct Branch {
    int sample;     ///< b K + k
    int left;       ///< the choice at which it left the sample's own row; -1 on that row itself
    bool possible;  ///< false if it could not take what the sample took later: probability 0
    bool is_sample() const { return left < 0; }
  };
  BranchingChooser(int samples, Randomness& random, const std::vector<std::uint32_t>& id)
      : samples_(samples), random_(random), id_(id) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

  /// After the run: what the last choice's rows are.
  const std::vector<Branch>& branches() const { return branches_; }
  /// [B K] the steps at which a sample had a choice.
  const std::vector<std::vector<int>>& choosing() const { return choosing_; }

 private:
  int draw(const Question<T>& question, int row, int sample);
  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  std::vector<Branch> branches_;
  std::vector<std::vector<int>> choosing_;
};

}  // namespace hardgrad
