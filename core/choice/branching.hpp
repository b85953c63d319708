// Samples and, for each sample, the rows that differ from it in one choice.
#pragma once

#include <limits>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// For rows that each change one of their `columns` choices, before they are made: NotExact if they are more than `cap`, or have
/// more choices than 100 `cap` in all. Their number grows with the columns, so that memory grows with the square.
void require_changes(double rows, int columns, double cap);

/// Every sample has its own row and one branch for each choice and each option not taken there. A branch makes the same later
/// choices as the sample: 1 + sum (S - 1) rows per sample. Draws are keyed as SampleHandler's. When the model asks from its
/// root again, a new run of branches begins.
template <class T>
class BranchingHandler final : public Handler<T> {
 public:
  struct Branch {
    int sample;     ///< b K + k
    int left;       ///< the choice (index into `choices`) at which it branched off; -1 for the sample's own row
    bool possible;  ///< false if a later choice of the sample has probability 0 on this branch
    int choosing;   ///< number of its choices with more than one option
    bool is_sample() const { return left < 0; }
  };
  /// `cap`: as in require_changes.
  BranchingHandler(int samples, Randomness& random, const std::vector<std::uint32_t>& id,
                   double cap = std::numeric_limits<double>::infinity())
      : samples_(samples), random_(random), id_(id), cap_(cap) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

  /// A choice: one column of one question.
  struct At {
    int step, column;
  };
  /// A sequence of questions, each asked from the rows of the one before.
  struct Run {
    int last = 0;                            ///< its last step
    std::vector<Branch> branches = {};       ///< the rows after that step
    std::vector<At> choices = {};            ///< all choices of the run
    std::vector<std::vector<int>> choosing;  ///< [B K] for each sample, the choices at which it had more than one option
  };
  /// After the run.
  const std::vector<Run>& runs() const { return runs_; }

 private:
  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  double cap_;
  std::vector<Run> runs_;
};

}  // namespace hardgrad
