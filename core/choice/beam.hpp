// Beams: several distinct paths of every example, grown breadth-first in one run of a model.
//
// A model with sequential choices continues from the rows of the surviving prefixes. A model with independent choices asks
// from its root every time, so the beam itself records the rows of each path. Within a question the beam grows column by
// column. Prefixes of columns need no rows, because the logits of all columns are known.
#pragma once

#include <limits>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/choice/structure.hpp"
#include "core/random/race.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// The choices of one path, from the beam's first choice on.
struct Path {
  std::vector<int> answer;  ///< for every column of every question, its index (Distribution::unrank)
  std::vector<int> row;     ///< for every question, the path's row among the rows after it
  double log_p = 0;
  double perturbed = 0;  ///< log p plus Gumbel noise, in a stochastic beam
  /// The law of its race (Randomness::without_one), if a dominant outcome begins with this path.
  const WithoutOne* law = nullptr;
};

/// The paths of one example.
struct Beam {
  std::vector<Path> paths;  ///< in order of their rank
  double rest = 0;          ///< probability of all other paths: the sum over the dropped ones, since 1 - kept would cancel
  /// Largest perturbed log p among all other paths, in a stochastic beam.
  double threshold = -std::numeric_limits<double>::infinity();
  int sampled = -1;  ///< the path sampled from the rest; -1 if there is none
};

/// A possible continuation of one path of the beam.
struct Candidate {
  int member;
  int answer;
  double log_p;  ///< of the whole path
  double perturbed = 0;
};

/// Grows the beams. A derived class selects the candidates that survive.
template <class T>
class BeamHandler : public Handler<T> {
 public:
  /// With `per_step` (the model's structure), every question has a separate beam; if columns have separate costs, so has every
  /// column. Only for models where a question changes no other question's costs. `per_step` must outlive the handler.
  BeamHandler(const std::vector<std::uint32_t>& id, const Structure* per_step) : id_(id), per_step_(per_step) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) final;

  /// The choices that share a beam: all questions of the run, one question, or one column of a question.
  struct Scope {
    int step = 0, column = -1;  ///< -1: all columns
    std::vector<Beam> beams;    ///< [B]
  };
  /// After the run.
  const std::vector<Scope>& scopes() const { return scopes_; }

 protected:
  /// The surviving candidates, in order of rank. Updates the beam's `rest`, `threshold` and `sampled`. `where` keys the draws.
  virtual std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) = 0;
  /// Called before the empty path is continued.
  virtual void begin(Draw /*where*/, Path& /*empty*/) {}
  /// True if a scope is more than one choice.
  bool grows() const { return grows_; }
  const std::vector<std::uint32_t>& id_;

 private:
  void start(const Question<T>& question, int column);
  /// Continues the paths of an example by one column of the asking rows.
  void grow(const Question<T>& question, int example, int column, Beam& beam);
  const Structure* per_step_;
  bool grows_ = true;
  std::vector<Scope> scopes_;
};

/// The k most probable prefixes. Candidates tie if their log p differ by at most 1e-12; then the lexicographically first path
/// wins, so that rounding does not matter. With independent choices these are the k most probable paths.
template <class T>
class TopHandler : public BeamHandler<T> {
 public:
  TopHandler(std::size_t k, const std::vector<std::uint32_t>& id, const Structure* per_step)
      : BeamHandler<T>(id, per_step), k_(k) {}

 protected:
  std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) override;
  std::size_t k_;
};

/// The k most probable prefixes, then one path sampled from all other paths in the same run (reservoir sampling). A prefix that
/// leaves the beam replaces the sampled path with probability (its mass) / (the mass of all prefixes that have left so far).
template <class T>
class TopAndOneHandler final : public TopHandler<T> {
 public:
  TopAndOneHandler(std::size_t k, const std::vector<std::uint32_t>& id, const Structure* per_step, Randomness& random)
      : TopHandler<T>(k, id, per_step), random_(random) {}

 protected:
  std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) override;

 private:
  Randomness& random_;
};

/// k paths without replacement, in the order drawn: stochastic beam search (Kool, van Hoof & Welling 2019, Stochastic
/// beams and where to find them, Algorithm 1). With `per_step`, a replay draws the same distribution answer by answer.
template <class T>
class StochasticHandler final : public BeamHandler<T> {
 public:
  StochasticHandler(std::size_t k, const std::vector<std::uint32_t>& id, const Structure* per_step, Randomness& random)
      : BeamHandler<T>(id, per_step), k_(k), whole_(!per_step), random_(random) {}

 protected:
  std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) override;
  void begin(Draw where, Path& empty) override;

 private:
  std::size_t k_;
  bool whole_;
  Randomness& random_;
};

/// Follows given paths: path[example][rank] are the answers.
template <class T>
class GivenHandler final : public BeamHandler<T> {
 public:
  GivenHandler(std::vector<std::vector<std::vector<int>>> path, const std::vector<std::uint32_t>& id)
      : BeamHandler<T>(id, nullptr), path_(std::move(path)) {}

 protected:
  std::vector<Candidate> keep(int example, Draw where, Beam& beam, std::vector<Candidate> candidates) override;

 private:
  std::vector<std::vector<std::vector<int>>> path_;
};

/// k outcomes without replacement, in order: sequential categorical draws, renormalised each time. Their joint distribution is
/// that of the k largest perturbed log probabilities `log_p`. `where.replica` counts the draws.
std::vector<int> draw_in_order(std::vector<double> log_p, std::size_t k, Randomness& random, Draw where);

}  // namespace hardgrad
