// The handlers: ways to answer a model's questions.
#pragma once

#include <vector>

#include "core/choice/episode.hpp"
#include "core/choice/structure.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// Samples: every question asked from the root gets `samples` rows per example. Each draw is keyed by (example id, sample,
/// step). Finished rows (one option) draw nothing.
template <class T>
class SampleHandler final : public Handler<T> {
 public:
  SampleHandler(int samples, Randomness& random, const std::vector<std::uint32_t>& id)
      : samples_(samples), random_(random), id_(id) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
};

/// Enumerates: one row per option, per set of options if a site has several columns, or per quadrature node if choices are
/// numbers. A factorised model branches from its root at every step. A sequential model grows a tree breadth-first, and every
/// prefix is computed once. Columns with separate costs are enumerated side by side: row i has option i of every column.
template <class T>
class EnumerateHandler : public Handler<T> {
 public:
  EnumerateHandler() = default;
  /// `structure` declares which columns have separate costs (default: none); it must outlive the handler. NotExact if one
  /// question makes more than `cap` rows.
  explicit EnumerateHandler(const Structure& structure, double cap = most_rows) : structure_(&structure), cap_(cap) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 protected:
  /// Appends the options of a choice to visit, in order. Default: all.
  virtual void visit(const Question<T>& question, int choice, std::vector<int>& to) const;

 private:
  static constexpr double most_rows = 1e9;
  const Structure* structure_ = nullptr;
  double cap_ = most_rows;
};

/// Returns given options: option[step] has one entry per choice of the asking rows, or a multiple of that, if every row is continued equally
/// often.
template <class T>
class ForcedHandler final : public Handler<T> {
 public:
  explicit ForcedHandler(std::vector<std::vector<int>> option) : option_(std::move(option)) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  std::vector<std::vector<int>> option_;
};

/// Repeats the choices of another run with the same rows. Relaxed choices become the hard options that they stand for, and numbers
/// lose their gradients, unless both are repeated `as_they_are`.
template <class T>
class RepeatHandler final : public Handler<T> {
 public:
  explicit RepeatHandler(const Episode<T>& answered, bool as_they_are = false)
      : answered_(answered), as_they_are_(as_they_are) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  const Episode<T>& answered_;
  bool as_they_are_;
};

/// The most probable answer.
template <class T>
class GreedyHandler final : public Handler<T> {
 public:
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;
};

/// Soft attention: the weights are the probabilities; for numbers, the mean.
template <class T>
class ExpectedHandler final : public Handler<T> {
 public:
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;
};

/// For handlers: the rows after `question` if each asking row is continued `copies` times.
template <class T>
RowsPtr fan_out(const Question<T>& question, int copies);
/// For handlers: an option drawn from the distribution of the site's choice. A choice with one option gives 0 without a draw.
template <class T>
int draw_option(const Question<T>& question, int choice, Randomness& random, Draw where);
/// For handlers: one option for each choice of `rows`, drawn from the distribution of the parent's choice. Rows of examples marked
/// in `skip` draw nothing and get option 0.
template <class T>
std::vector<int> draw_options(const Question<T>& question, const Rows& rows, Randomness& random,
                              const std::vector<std::uint32_t>& id, const std::vector<bool>* skip = nullptr);

// K samples per example from stratified uniform numbers: one in each stratum (j / K, (j + 1) / K).

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
