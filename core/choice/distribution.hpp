// What a site asks for: a distribution over the choices of all its rows.
//
// R rows ask for D choices (columns) each, which are independent of each other given everything before; cell r D + d is column
// d of row r. Estimators and episodes speak to this interface; a further distribution is one file (normal.cpp is the shortest).
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/choice/choice.hpp"
#include "core/choice/site_kind.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

/// Where the noise of one question comes from: a draw is keyed by (example id, sample, question, column).
struct Noise {
  Randomness& random;
  const std::vector<std::uint32_t>& id;  ///< of the examples of the batch
  int step;                              ///< index of the question
  std::uint32_t first = 0;               ///< the sample that stands in the first row of an example

  Draw at(const Rows& rows, std::size_t row, std::size_t column = 0) const {
    return {.example = id[rows.example[row]],
            .replica = first + static_cast<std::uint32_t>(rows.replica[row]),
            .step = static_cast<std::uint32_t>(step),
            .column = static_cast<std::uint32_t>(column)};
  }
};

/// What an enumeration visits.
struct Visits {
  bool side_by_side = false;  ///< the columns each by itself (Choice::side_by_side), not their sets
  std::function<void(int cell, std::vector<int>& to)> options = {};  ///< of categories: adds those of a cell, at least one
  double cap = 1e9;                                                  ///< most rows; NotExact beyond
  int nodes = 0;  ///< of numbers: points of a quadrature for each column (Choice::log_volume)
};

template <class T>
class Distribution {
 public:
  virtual ~Distribution() = default;
  virtual const SiteKind& kind() const = 0;
  std::size_t rows() const { return rows_; }
  int columns() const { return columns_; }
  /// What it is made of, by name: matrices of R or R D rows. Gradients at a site's parameters are taken here.
  virtual std::vector<std::pair<std::string_view, Var<T>>> parameters() const = 0;
  /// False if all columns of the row are settled already, such as padding.
  virtual bool chooses(std::size_t /*row*/) const { return true; }

  // Answers. `rows` [R'] continue this distribution's rows through their parents.
  /// One draw for each of `rows`.
  virtual Choice<T> sample(Tape<T>& tape, const RowsPtr& rows, const Noise& noise) const = 0;
  /// The same, differentiable in the parameters (kind().reparameterised). Bug if that cannot be.
  virtual Choice<T> reparameterised_sample(Tape<T>&, const RowsPtr&, const Noise&) const {
    throw Bug("this distribution has no reparameterised draws");
  }
  /// Numbers at which the columns' distribution functions have the values u [R' D] in (0, 1) (kind().quantiles).
  virtual Choice<T> at_quantiles(Tape<T>&, const RowsPtr&, const std::vector<double>& /*u*/) const {
    throw Bug("this distribution has no quantiles");
  }
  /// The most probable answer.
  virtual Choice<T> mode(Tape<T>& tape, const RowsPtr& rows) const = 0;
  /// The expected answer: weights, or the mean.
  virtual Choice<T> mean(const RowsPtr& rows) const = 0;
  /// All there is, for rows that ask as choice `step`.
  virtual Choice<T> enumerate(Tape<T>& tape, const RowsPtr& asking, int step, const Visits& visits) const = 0;

  // Numbers in nats.
  /// Log probability (or density) of an answer that has one, of each column [R', D].
  virtual Var<T> log_probability(const Choice<T>& choice) const = 0;
  /// |d log probability / d parameters|^2 of an answer, of each column [R' D], the parameters being logits, or means and log
  /// scales.
  virtual std::vector<double> squared_scores(const Choice<T>& choice) const = 0;
  virtual Var<T> entropy() const = 0;  ///< [R, 1], summed over the columns
  /// KL(this || other) of another of its kind with the same rows [R, 1], summed over the columns.
  virtual Var<T> divergence(const Distribution& other) const = 0;
  /// The mean of log this - log other under an answer's weights, of each column [R', D] (kind().relaxable).
  virtual Var<T> log_ratio(const Choice<T>&, const Distribution& /*other*/) const {
    throw Bug("this distribution's answers are no weights");
  }

 protected:
  Distribution(std::size_t rows, int columns) : rows_(rows), columns_(columns) {}

 private:
  std::size_t rows_;
  int columns_;
};

template <class T>
using DistributionPtr = std::shared_ptr<const Distribution<T>>;

}  // namespace hardgrad
