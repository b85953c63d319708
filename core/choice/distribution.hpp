// The distribution of a site: it covers the choices of all its rows.
//
// Each of R rows has D choices (columns), which are independent given all earlier choices. Choice r D + d is column d of row r.
// Estimators and episodes use this interface only, so a new distribution is one file (normal.cpp is the shortest).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/autodiff/reduce.hpp"
#include "core/choice/choice.hpp"
#include "core/choice/site_kind.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// The noise source of one question. A draw is keyed by (example id, sample, question, column).
struct Noise {
  Randomness& random;
  const std::vector<std::uint32_t>& id;  ///< ids of the batch's examples
  int step;                              ///< index of the question
  std::uint32_t first = 0;               ///< the sample in an example's first row

  Draw at(const Rows& rows, std::size_t row, std::size_t column = 0) const {
    return {.example = id[rows.example[row]],
            .replica = first + static_cast<std::uint32_t>(rows.replica[row]),
            .step = static_cast<std::uint32_t>(step),
            .column = static_cast<std::uint32_t>(column)};
  }
};

/// The options of an enumeration.
struct Visits {
  bool side_by_side = false;  ///< enumerate each column by itself (Choice::side_by_side), not all sets
  std::function<void(int choice, std::vector<int>& to)> options = {};  ///< categories: appends a choice's options, at least one
  double cap = 1e9;                                                    ///< most rows; NotExact beyond
  int nodes = 0;  ///< numbers: quadrature points per column (Choice::log_volume)
};

template <class T>
class Categorical;

template <class T>
class Distribution {
 public:
  virtual ~Distribution() = default;
  virtual const SiteKind& kind() const = 0;
  /// The distribution as a categorical one. Bug if its choices are not one option each.
  virtual const Categorical<T>& categories() const {
    throw Bug("one option is needed, but the site's choices are numbers or subsets");
  }
  std::size_t rows() const { return rows_; }
  int columns() const { return columns_; }
  /// The parameters by name: matrices of R or R D rows. Gradients with respect to a site's parameters are taken here.
  virtual std::vector<std::pair<std::string_view, Var<T>>> parameters() const = 0;
  /// False if no column of the row has more than one answer, e.g. in padding.
  virtual bool chooses(std::size_t /*row*/) const { return true; }
  /// The numbers that determine a column of a row, up to rounding: log probabilities, or parameters.
  virtual std::vector<double> parameters_at(std::size_t row, std::size_t column) const = 0;
  /// Puts on the tape, before an estimator's operations, what these need.
  virtual void prepare() const {}

  // Of choices among options; Bug if the choices are numbers.
  /// The logits [R D, S], and the number of options of each choice [R D].
  virtual Var<T> logits() const { throw Bug("options are needed, but the site's choices are numbers"); }
  virtual const std::vector<int>& options() const { throw Bug("options are needed, but the site's choices are numbers"); }
  /// Options of one answer: 1, or the most of a subset; and those of one choice, which are all it has if these are fewer.
  virtual int subset_size() const { return 1; }
  virtual int subset_size_of(std::size_t /*choice*/) const { return 1; }
  /// d log probability / d logits [options[choice]] of a choice's answer, the options `picked` [picks]. Bug if answers are not subsets.
  virtual std::vector<double> score(std::size_t /*choice*/, std::span<const int> /*picked*/) const {
    throw Bug("the site's choices are not subsets");
  }
  /// Number of answers of a choice: its options, or its subsets. 0 if choices are numbers.
  virtual double support_size(std::size_t /*choice*/) const { return 0; }
  /// log p of each answer of a choice, in the order of `unrank`. NotExact if they are too many to list.
  virtual std::vector<double> log_p_of_answers(std::size_t /*choice*/) const {
    throw Bug("options are needed, but the site's choices are numbers");
  }
  /// For each of `rows`, the answer with this index [R' D] in the order in which `enumerate` visits a choice's answers.
  virtual Choice<T> unrank(const RowsPtr& /*rows*/, const std::vector<int>& /*index*/) const {
    throw Bug("options are needed, but the site's choices are numbers");
  }

  // Answers. `rows` [R'] are the rows after the choice; their parents are this distribution's rows.
  /// One draw for each of `rows`.
  virtual Choice<T> sample(Tape<T>& tape, const RowsPtr& rows, const Noise& noise) const = 0;
  /// The same, differentiable in the parameters. Bug unless kind().reparameterised.
  virtual Choice<T> reparameterised_sample(Tape<T>&, const RowsPtr&, const Noise&) const {
    throw Bug("this distribution has no reparameterised draws");
  }
  /// The quantiles of the columns at u [R' D], each in (0, 1). Bug unless kind().quantiles.
  virtual Choice<T> at_quantiles(Tape<T>&, const RowsPtr&, const std::vector<double>& /*u*/) const {
    throw Bug("this distribution has no quantiles");
  }
  /// The most probable answer.
  virtual Choice<T> mode(Tape<T>& tape, const RowsPtr& rows) const = 0;
  /// The expected answer: the probabilities as weights, or the mean.
  virtual Choice<T> mean(const RowsPtr& rows) const = 0;
  /// All answers, for the rows that ask choice `step`.
  virtual Choice<T> enumerate(Tape<T>& tape, const RowsPtr& asking, int step, const Visits& visits) const = 0;

  // Values in nats.
  /// Log probability (or density) of an answer, by column [R', D]. The answer must have one (Choice::has_probability).
  virtual Var<T> log_probability(const Choice<T>& choice) const = 0;
  /// The same summed over the columns [R', 1].
  virtual Var<T> log_probability_of_rows(const Choice<T>& choice) const { return row_sums(log_probability(choice)); }
  /// |d log probability / d parameters|^2 of an answer, by column [R' D]. The parameters are the logits, or the mean and the
  /// log scale.
  virtual std::vector<double> squared_scores(const Choice<T>& choice) const = 0;
  virtual Var<T> entropy() const = 0;  ///< [R, 1], summed over the columns
  /// KL(this || other) [R, 1], summed over the columns. `other` has the same kind and rows.
  virtual Var<T> divergence(const Distribution& other) const = 0;
  /// The mean of log this - log other under an answer's weights, by column [R', D]. Bug if answers have no weights.
  virtual Var<T> log_ratio(const Choice<T>&, const Distribution& /*other*/) const {
    throw Bug("this distribution's answers have no weights");
  }

 protected:
  Distribution(std::size_t rows, int columns) : rows_(rows), columns_(columns) {}

 private:
  std::size_t rows_;
  int columns_;
};

template <class T>
using DistributionPtr = std::shared_ptr<const Distribution<T>>;

// The rows of an enumeration: all sets of the answers of a row's columns, or the answers of each column side by side.

struct EnumeratedSets {
  std::vector<int> parent;         ///< [R'] the asking row
  std::vector<int> answer;         ///< [R' D] index of the column's answer
  std::vector<char> padding_mask;  ///< as Choice::padding_mask
};

/// For `asks` rows of D columns; support_size(c) is the number of answers of choice c, at least 1. NotExact beyond the cap of
/// rows.
EnumeratedSets enumerated_sets(std::size_t asks, std::size_t D, const std::function<double(std::size_t)>& support_size,
                               int step, const Visits& visits);

}  // namespace hardgrad
