// Control variates c(w) of relaxed choices w = softmax(z / temperature), whose noise z is that of the hard choice b.
//
// For any function c, given all earlier choices, the score term of a choice has the mean grad E[c(w)]:
//   E[ c(w~) grad log p(b) + grad c(w~) ] = grad E[c(w)] = E[ grad c(w) ],   w~ made of z~ ~ z | b, grad with the noise held
// so -c(w~) grad log p(b) + grad c(w) - grad c(w~)  has mean 0 and may be added to the gradient at the logits.
#pragma once

#include <functional>
#include <optional>

#include "core/estimator/choices.hpp"
#include "core/estimator/coupling/coupled.hpp"

namespace hardgrad {

/// The hard choices b of a run, whose noise is z, and noise z~ drawn given b (or z again).
struct RelaxedChoices {
  std::shared_ptr<const ChoiceLayout> layout;
  std::vector<int> option;  ///< [choices] b
  const AtLogits& p;
  AtLogits given;  ///< z~

  /// w~ at a temperature.
  AtLogits weights(double temperature) const;
  /// Where a function is differentiated: writes the weights of the choices of samples [from, to) at a step, and the function's
  /// derivative there, [choices, S] each.
  using Slope = std::function<void(std::size_t step, std::size_t from, std::size_t to, double* weights, double* slope)>;
  /// From the numbers of all choices, which must outlive it.
  static Slope slope_of(const AtLogits& weights, const AtLogits& slope);
  /// signal grad log p(b) + eta (grad c(w) - grad c(w~)). Without `at_given`, z~ = z, and one slope serves both.
  AtLogits gradient(double temperature, const PerChoice& signal, double eta, const Slope& at_free,
                    const Slope& at_given = {}) const;
  /// The adjoint of grad c(w) - grad c(w~) in the slope of c, for z~ = z: direction . slope = g . (grad c(w) - grad c(w~)) for
  /// every choice.
  AtLogits direction(double temperature, const AtLogits& g) const;
};

/// One hard path per group and relaxed paths beside it, for each of several temperatures, as members of a coupled run.
template <class T>
class RelaxedRun {
 public:
  /// If `coupled`, z~ = z and one relaxed path serves both; otherwise z~ is drawn separately and has its own path.
  RelaxedRun(const Problem<T>& problem, int groups, bool coupled, std::vector<double> temperatures);

  const RelaxedChoices& choices() const { return *relaxed_; }
  /// The losses of the hard paths.
  PerChoice losses(Credit credit) const { return run_->losses(0, credit); }
  /// The losses f(w~) of the relaxed paths at a temperature.
  PerChoice relaxed_losses(std::size_t temperature, Credit credit) const;
  /// signal grad log p(b) + eta (grad f(w) - grad f(w~))
  AtLogits gradient(std::size_t temperature, const PerChoice& signal, double eta) const;
  /// The path term of the hard samples plus g at the logits of every choice, averaged over the groups.
  Var<T> surrogate(const AtLogits& g);
  Coupled<T>& run() { return *run_; }

 private:
  void relax(const Question<T>& question, const std::vector<BranchPoint>& branch_points, Branches<T>& branches, Tape<T>& tape,
             Randomness& random);
  int free_member(std::size_t temperature) const { return static_cast<int>(coupled_ ? 1 + temperature : 1 + 2 * temperature); }
  int given_member(std::size_t temperature) const { return free_member(temperature) + (coupled_ ? 0 : 1); }
  RelaxedChoices::Slope slope_of(int member) const;
  bool coupled_;
  std::vector<double> temperatures_;
  int members_;
  std::vector<std::vector<double>> given_;  // [step][groups D, S]; empty after the run
  std::optional<RelaxedChoices> relaxed_;
  std::unique_ptr<Coupled<T>> run_;
  std::vector<MatrixView<const T>> slopes_;  // [step] of the losses of relaxed members, [groups members D, S]
};

extern template class RelaxedRun<float>;
extern template class RelaxedRun<double>;

}  // namespace hardgrad
