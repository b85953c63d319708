// Hard samples with the derivative of each one's loss in the weights of its choices, for control variates made of it.
#pragma once

#include <span>
#include <vector>

#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// Gradients at the logits of every site: [step][asking row, S].
using AtLogits = std::vector<std::vector<double>>;

/// K samples an example; rows r = b K + k. The options enter the model as weights, so that they can be differentiated.
template <class T>
class SlopedSamples {
 public:
  SlopedSamples(const Problem<T>& problem, int samples);
  Sampled<T>& run() { return *run_; }
  int steps() const { return static_cast<int>(slope_.size()); }
  int samples() const { return samples_; }
  std::size_t rows() const { return rows_; }

  int options(int step, std::size_t row) const;
  int option(int step, std::size_t row) const { return run_->episode().steps()[step].choice.option[row]; }
  /// [options] probabilities a row chose with, and df/dweights there.
  std::span<const double> p(int step, std::size_t row) const;
  std::span<const double> slope(int step, std::size_t row) const;
  /// [options] mean slope of the example's other samples, who may have fewer options: 0 beyond them.
  std::vector<double> others_slope(int step, std::size_t row) const;

  /// Zeros.
  AtLogits at_logits() const;
  /// Adds value [options] to the gradient at the logits a row chose by.
  void add(AtLogits& to, int step, std::size_t row, double factor, std::span<const double> value) const;
  /// Mean over examples of sum over samples / K: its gradient at the logits is `at` / rows().
  Var<T> surrogate(const AtLogits& at);
  /// Mean over examples of <a, b> of the estimates a / K and b / K. Samples meet at the logits they share: not in rows of
  /// their own, where choices feed later ones.
  double product(const AtLogits& a, const AtLogits& b) const;
  /// <g, grad log p(option)> at the logits a row chose by.
  double product_at(const AtLogits& g, int step, std::size_t row, int option) const;

 private:
  std::size_t row_of(int step, std::size_t row) const { return run_->episode().steps()[step].choice.rows->parent[row]; }
  int samples_;
  std::size_t rows_ = 0;
  std::unique_ptr<Sampled<T>> run_;
  std::vector<std::size_t> width_;              // S of each step
  std::vector<std::vector<double>> p_, slope_;  // [asking rows, S], [rows, S]
};

/// one_hot(option) - p.
std::vector<double> score(int option, std::span<const double> p);
/// (diag(p) - p p') x: the gradient at the logits of p . x.
std::vector<double> through_softmax(std::span<const double> p, std::span<const double> x);

extern template class SlopedSamples<float>;
extern template class SlopedSamples<double>;

}  // namespace hardgrad
