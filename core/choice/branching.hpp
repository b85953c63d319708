// Samples, and beside each of them the rows that differ from it in one choice.
#pragma once

#include <vector>

#include "core/choice/episode.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// Keeps for every sample one row that is drawn, and rows that left it at one choice (one column, for each option it did not
/// take) and from then on take what it takes: 1 + sum (S - 1) rows. Draws as SampleChooser's. Where the model asks from its
/// root again, a new run of branches begins.
template <class T>
class BranchingChooser final : public Chooser<T> {
 public:
  struct Branch {
    int sample;     ///< b K + k
    int left;       ///< the choice (of `choices`) at which it left the sample's own row; -1 on that row itself
    bool possible;  ///< false if it could not take what the sample took later: probability 0
    int choosing;   ///< how often it had a choice
    bool is_sample() const { return left < 0; }
  };
  BranchingChooser(int samples, Randomness& random, const std::vector<std::uint32_t>& id)
      : samples_(samples), random_(random), id_(id) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

  /// A choice: the column of a question.
  struct At {
    int step, column;
  };
  /// Questions that go on from each other.
  struct Run {
    int last = 0;                            ///< its last step, whose rows the branches are
    std::vector<Branch> branches = {};       ///< those rows
    std::vector<At> choices = {};            ///< all of them
    std::vector<std::vector<int>> choosing;  ///< [B K] those at which a sample had a choice
  };
  /// After the run.
  const std::vector<Run>& runs() const { return runs_; }

 private:
  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  std::vector<Run> runs_;
};

}  // namespace hardgrad
