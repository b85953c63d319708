// Beams: several distinct paths of every example, grown breadth-first in one run of a model.
//
// A model with sequential choices goes on from the rows of the surviving prefixes; one with independent choices asks from
// its root every time, so the beam itself remembers which row of which choice belongs to which path. Within a question the beam
// grows column by column, and no row is run for a prefix of these: all their logits are known.
#pragma once

#include <limits>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/choice/structure.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// What was chosen on the way, from the beam's first choice on.
struct Path {
  std::vector<int> option;  ///< of every column of every question
  std::vector<int> row;     ///< of the rows that each question made
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
  /// With `per_step`, the model's structure, every question has a beam of its own, and every column of it if columns have costs
  /// of their own: only for models whose questions change no costs but their own. It must outlive the chooser.
  BeamChooser(const std::vector<std::uint32_t>& id, const Structure* per_step) : id_(id), per_step_(per_step) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) final;

  /// What is chosen together: the whole run from its first question on, a question, or a column of one.
  struct Scope {
    int step = 0, column = -1;  ///< -1: all columns
    std::vector<Beam> beams;    ///< [B]
  };
  /// After the run.
  const std::vector<Scope>& scopes() const { return scopes_; }

 protected:
  /// The candidates that go on, in order of rank. Updates what the beam says of the others. `where` names the choice's draws.
  virtual std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) = 0;
  /// The empty path is about to be continued.
  virtual void begin(Draw /*where*/, Path& /*empty*/) {}
  /// True if a scope is more than one choice.
  bool grows() const { return grows_; }
  const std::vector<std::uint32_t>& id_;

 private:
  void start(const Question<T>& question, int column);
  /// Continues the paths of an example by one column of the rows that ask.
  void grow(const Question<T>& question, int example, int column, Beam& beam);
  const Structure* per_step_;
  bool grows_ = true;
  std::vector<Scope> scopes_;
};

/// The k most probable prefixes. Candidates whose log p differ by no more than 1e-12 tie, and the lexicographically first
/// path wins, whatever the rounding. With independent choices these are the k most probable paths.
template <class T>
class TopChooser : public BeamChooser<T> {
 public:
  TopChooser(std::size_t k, const std::vector<std::uint32_t>& id, const Structure* per_step)
      : BeamChooser<T>(id, per_step), k_(k) {}

 protected:
  std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) override;
  std::size_t k_;
};

/// The k most probable prefixes and, after them, one path drawn from all the others in the same run: a reservoir. A prefix
/// that leaves the beam replaces the drawn one with the probability its mass has in all that has left so far.
template <class T>
class TopAndOneChooser final : public TopChooser<T> {
 public:
  TopAndOneChooser(std::size_t k, const std::vector<std::uint32_t>& id, const Structure* per_step, Randomness& random)
      : TopChooser<T>(k, id, per_step), random_(random) {}

 protected:
  std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) override;

 private:
  Randomness& random_;
};

/// k paths without replacement, in the order drawn: stochastic beam search (Kool, van Hoof & Welling 2019, Stochastic
/// beams and where to find them, Algorithm 1). Per step, the same law may be drawn option by option.
template <class T>
class StochasticChooser final : public BeamChooser<T> {
 public:
  StochasticChooser(std::size_t k, const std::vector<std::uint32_t>& id, const Structure* per_step, Randomness& random)
      : BeamChooser<T>(id, per_step), k_(k), random_(random) {}

 protected:
  std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) override;
  void begin(Draw where, Path& empty) override;

 private:
  std::size_t k_;
  Randomness& random_;
};

/// The paths it was given: path[example][rank] are the options.
template <class T>
class GivenChooser final : public BeamChooser<T> {
 public:
  GivenChooser(std::vector<std::vector<std::vector<int>>> path, const std::vector<std::uint32_t>& id)
      : BeamChooser<T>(id, nullptr), path_(std::move(path)) {}

 protected:
  std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) override;

 private:
  std::vector<std::vector<std::vector<int>>> path_;
};

/// k of the outcomes without replacement, in order, by one categorical draw after the other (renormalised each time):
/// the law of the k largest perturbed log probabilities. `where.replica` counts the draws.
std::vector<int> draw_in_order(std::vector<double> probability, std::size_t k, Randomness& random, Draw where);

}  // namespace hardgrad
