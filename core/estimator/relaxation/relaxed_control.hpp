// Control variates c(w) of relaxed choices w = softmax(z / temperature), whose noise z is that of the hard choice b.
//
// Given everything before it, a choice's score term of any c has the mean grad E[c(w)]:
//   E[ c(w~) grad log p(b) + grad c(w~) ] = grad E[c(w)] = E[ grad c(w) ],   w~ made of z~ ~ z | b, grad with the noise held
// so that  -c(w~) grad log p(b) + grad c(w) - grad c(w~)  has the mean 0 and may be added to the gradient at the logits.
#pragma once

#include <functional>
#include <vector>

#include "core/choice/gumbel.hpp"
#include "core/estimator/coupling/coupled.hpp"

namespace hardgrad {

/// One choice of one group: probabilities, the noise z that chose, and noise z~ drawn given the option (or z once more).
struct RelaxedChoice {
  std::vector<double> log_p;  ///< [n]; empty where there was no choice
  Perturbed free, given;

  /// grad log p(b) at the logits [n].
  std::vector<double> score() const;
  /// [n] gradients at the logits of a function of w (of w~), from its derivative in w (in w~) [at least n].
  std::vector<double> through_free(double temperature, std::span<const double> slope) const;
  std::vector<double> through_given(double temperature, std::span<const double> slope) const;
  /// -c(w~) grad log p(b) + grad c(w) - grad c(w~)
  std::vector<double> control(double temperature, double value, std::span<const double> slope,
                              std::span<const double> slope_given) const;
  /// The adjoint in the slope of a c with z~ = z: direction . slope = g . (grad c(w) - grad c(w~)).
  std::vector<double> direction(double temperature, std::span<const double> g) const;
};

double dot(std::span<const double> a, std::span<const double> b);
void add_scaled(std::vector<double>& to, double factor, std::span<const double> x);

/// A hard path per group with relaxed ones beside it, at each of several temperatures, as members of a coupled run.
template <class T>
class RelaxedRun {
 public:
  /// With `coupled`, z~ is z, and one relaxed path serves both; otherwise it has noise and a path of its own.
  RelaxedRun(const Problem<T>& problem, int groups, bool coupled, std::vector<double> temperatures);

  int steps() const { return static_cast<int>(choices_.size()); }
  std::size_t groups() const { return run_->groups(); }
  const RelaxedChoice& choice(int step, std::size_t group) const { return choices_[step][group]; }
  Coupled<T>& run() { return *run_; }

  /// The gradient at a choice's logits [n], given the hard path's loss f and, by temperature, the control of the relaxed loss.
  using Rule = std::function<std::vector<double>(int step, std::size_t group, double f,
                                                 const std::vector<std::vector<double>>& controls)>;
  /// Path term of the hard samples, and the rule's gradients at the logits of every choice.
  Var<T> surrogate(Credit credit, const Rule& rule);

 private:
  std::span<const double> slope(int step, std::size_t group, int member) const;
  bool coupled_;
  std::vector<double> temperatures_;
  std::vector<std::vector<RelaxedChoice>> choices_;  // [step][group]
  std::vector<std::vector<double>> slopes_;          // [step][group, member, S] of the relaxed losses in their weights
  std::vector<std::size_t> width_;                   // S of each step
  int members_;
  std::unique_ptr<Coupled<T>> run_;
};

extern template class RelaxedRun<float>;
extern template class RelaxedRun<double>;

}  // namespace hardgrad
