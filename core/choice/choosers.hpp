// The choosers: ways to answer a model's questions.
#pragma once

#include <vector>

#include "core/choice/episode.hpp"
#include "core/choice/structure.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// Samples: `samples` rows per example, fanned out wherever a root row asks. Each draw is keyed by (example id, sample,
/// step). Finished rows (one option) draw nothing.
template <class T>
class SampleChooser final : public Chooser<T> {
 public:
  SampleChooser(int samples, Randomness& random, const std::vector<std::uint32_t>& id)
      : samples_(samples), random_(random), id_(id) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
};

/// Enumerates: one row per option, or set of options where a site has several columns, or node of a quadrature where choices
/// are numbers. A factorised model branches at every step from its root, a sequential one grows a tree breadth-first in which
/// every prefix is computed once. Columns whose costs are their own are not multiplied: row i has option i of every column,
/// side by side.
template <class T>
class EnumerateChooser : public Chooser<T> {
 public:
  EnumerateChooser() = default;
  /// `structure` says which columns have costs of their own (without it none have); it must outlive the chooser. `cap`: the
  /// most rows one question may make; NotExact beyond.
  explicit EnumerateChooser(const Structure& structure, double cap = most_rows) : structure_(&structure), cap_(cap) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 protected:
  /// Adds the options of a cell that are visited, in order: all of them.
  virtual void visit(const Question<T>& question, int cell, std::vector<int>& to) const;

 private:
  static constexpr double most_rows = 1e9;
  const Structure* structure_ = nullptr;
  double cap_ = most_rows;
};

/// Answers what it was given: option[step] has one entry per cell that is asked, or a multiple of it (rows fan out alike).
template <class T>
class ForcedChooser final : public Chooser<T> {
 public:
  explicit ForcedChooser(std::vector<std::vector<int>> option) : option_(std::move(option)) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  std::vector<std::vector<int>> option_;
};

/// Answers as another run was answered, whose rows were the same.
template <class T>
class RepeatChooser final : public Chooser<T> {
 public:
  explicit RepeatChooser(const Episode<T>& answered) : answered_(answered) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  const Episode<T>& answered_;
};

/// The most probable answer.
template <class T>
class GreedyChooser final : public Chooser<T> {
 public:
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;
};

/// Soft attention: the weights are the probabilities themselves. Of numbers the mean.
template <class T>
class ExpectedChooser final : public Chooser<T> {
 public:
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;
};

/// For choosers: the rows after `question` when each asking row is continued `copies` times.
template <class T>
RowsPtr fan_out(const Question<T>& question, int copies);
/// For choosers: an option of the site's cell, drawn from its distribution; 0 without a draw if it has only one.
template <class T>
int draw_option(const Question<T>& question, int cell, Randomness& random, Draw where);
/// For choosers: one option per cell of `rows`, drawn from the distribution of the cell it continues. Rows of an example marked
/// in `skip` draw nothing and get option 0.
template <class T>
std::vector<int> draw_options(const Question<T>& question, const Rows& rows, Randomness& random,
                              const std::vector<std::uint32_t>& id, const std::vector<bool>* skip = nullptr);

}  // namespace hardgrad
