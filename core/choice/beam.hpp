// Beams: several distinct paths of every example, grown breadth-first in one run of a model.
//
// A model with sequential choices goes on from the rows of the surviving prefixes; one with independent choices asks from
// its root every time, so the beam itself remembers which row of which choice belongs to which path.
#pragma once

#include <limits>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// What was chosen on the way, from the beam's first choice on.
struct Path {
  std::vector<int> option;
  std::vector<int> row;  ///< of the rows that each choice made
  double log_p = 0;
  double perturbed = 0;  ///< log p plus Gumbel noise, where a beam is stochastic
};

/// The paths of one example.
struct Beam {
  std::vector<Path> paths;  ///< in order of their rank
  double rest = 0;          ///< probability of all other paths, summed from what was dropped: it does not cancel
  /// Largest perturbed log p among all other paths, where a beam is stochastic.
  double threshold = -std::numeric_limits<double>::infinity();
  int sampled = -1;  ///< the path that stands for the rest, if there is one
};

/// A way one path of the beam may go on.
struct Candidate {
  int member;
  int option;
  double log_p;  ///< of the whole path
  double perturbed = 0;
};

/// Grows the beams; what survives is a derived class's.
template <class T>
class BeamChooser : public Chooser<T> {
 public:
  /// With `per_step` every choice has a beam of its own: only for models whose choices are independent.
  BeamChooser(const std::vector<std::uint32_t>& id, bool per_step) : id_(id), per_step_(per_step) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) final;
  /// After the run: [1][B], or [steps][B] per step.
  const std::vector<std::vector<Beam>>& beams() const { return beams_; }

 protected:
  /// The candidates that go on, in order of rank. Updates what the beam says of the others.
  virtual std::vector<Candidate> keep(int example, int step, Beam& beam, std::vector<Candidate> candidates) = 0;
  /// The empty path is about to be continued.
  virtual void begin(int /*example*/, int /*step*/, Path& /*empty*/) {}
  const std::vector<std::uint32_t>& id_;
  bool per_step_;

 private:
  std::vector<std::vector<Beam>> beams_;
};

/// The k most probable prefixes. Candidates whose log p differ by no more than 1e-12 tie, and the lexicographically first
/// path wins, whatever the rounding. With independent choices these are the k most probable paths.
template <class T>
class TopChooser : public BeamChooser<T> {
 public:
  TopChooser(std::size_t k, const std::vector<std::uint32_t>& id, bool per_step) : BeamChooser<T>(id, per_step), k_(k) {}

 protected:
  std::vector<Candidate> keep(int example, int step, Beam& beam, std::vector<Candidate> candidates) override;
  std::size_t k_;
};

/// The k most probable prefixes and, after them, one path drawn from all the others in the same run: a reservoir. A prefix
/// that leaves the beam replaces the drawn one with the probability its mass has in all that has left so far.
template <class T>
class TopAndOneChooser final : public TopChooser<T> {
 public:
  TopAndOneChooser(std::size_t k, const std::vector<std::uint32_t>& id, bool per_step, Randomness& random)
      : TopChooser<T>(k, id, per_step), random_(random) {}

 protected:
  std::vector<Candidate> keep(int example, int step, Beam& beam, std::vector<Candidate> candidates) override;

 private:
  Randomness& random_;
};

/// k paths without replacement, in the order drawn: stochastic beam search (Kool, van Hoof & Welling 2019, Stochastic
/// beams and where to find them, Algorithm 1). Per step, the same law may be drawn option by option.
template <class T>
class StochasticChooser final : public BeamChooser<T> {
 public:
  StochasticChooser(std::size_t k, const std::vector<std::uint32_t>& id, bool per_step, Randomness& random)
      : BeamChooser<T>(id, per_step), k_(k), random_(random) {}

 protected:
  std::vector<Candidate> keep(int example, int step, Beam& beam, std::vector<Candidate> candidates) override;
  void begin(int example, int step, Path& empty) override;

 private:
  std::size_t k_;
  Randomness& random_;
};

/// The paths it was given: path[example][rank] are the options.
template <class T>
class GivenChooser final : public BeamChooser<T> {
 public:
  GivenChooser(std::vector<std::vector<std::vector<int>>> path, const std::vector<std::uint32_t>& id)
      : BeamChooser<T>(id, false), path_(std::move(path)) {}

 protected:
  std::vector<Candidate> keep(int example, int step, Beam& beam, std::vector<Candidate> candidates) override;

 private:
  std::vector<std::vector<std::vector<int>>> path_;
};

/// k of the outcomes without replacement, in order, by one categorical draw after the other (renormalised each time):
/// the law of the k largest perturbed log probabilities. `where.replica` counts the draws.
std::vector<int> draw_in_order(std::vector<double> probability, std::size_t k, Randomness& random, Draw where);

}  // namespace hardgrad
