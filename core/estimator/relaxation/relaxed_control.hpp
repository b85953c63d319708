// Control variates c(w) of relaxed choices w = softmax(z / temperature), whose noise z is that of the hard choice b.
//
// Given everything before it, a choice's score term of any c has the mean grad E[c(w)]:
//   E[ c(w~) grad log p(b) + grad c(w~) ] = grad E[c(w)] = E[ grad c(w) ],   w~ made of z~ ~ z | b, grad with the noise held
// so that  -c(w~) grad log p(b) + grad c(w) - grad c(w~)  has the mean 0 and may be added to the gradient at the logits.
#pragma once

#include <optional>

#include "core/estimator/choices.hpp"
#include "core/estimator/coupling/coupled.hpp"

namespace hardgrad {

/// The hard choices b of a run with the noise z that made them, and noise z~ drawn given b (or z once more).
struct RelaxedChoices {
  std::shared_ptr<const ChoiceLayout> layout;
  std::vector<int> option;  ///< [cells] b
  const AtLogits &log_p, &p, &score;
  AtLogits free, given;  ///< z and z~

  /// w or w~ at a temperature.
  AtLogits weights(const AtLogits& z, double temperature) const;
  /// Where a function is differentiated: the weights w or w~, and the derivative there.
  struct Slope {
    const AtLogits &weights, &slope;
  };
  /// Gradients at the logits of a function of w, or of w~.
  AtLogits through_free(double temperature, Slope at) const;
  AtLogits through_given(double temperature, Slope at) const;
  /// -c(w~) grad log p(b) + grad c(w) - grad c(w~), with c(w~) the value.
  AtLogits control(double temperature, const PerChoice& value, Slope at_free, Slope at_given) const;
  /// The same where z~ is z, so that one slope serves both.
  AtLogits control(double temperature, const PerChoice& value, Slope at) const;
  /// The adjoint in the slope of a c with z~ = z: direction . slope = g . (grad c(w) - grad c(w~)) for every choice.
  AtLogits direction(double temperature, const AtLogits& g) const;

 private:
  AtLogits followed_by(const AtLogits& z) const;
  AtLogits given_the_choice(AtLogits with_noise_held) const;
};

/// A hard path per group with relaxed ones beside it, at each of several temperatures, as members of a coupled run.
template <class T>
class RelaxedRun {
 public:
  /// With `coupled`, z~ is z, and one relaxed path serves both; otherwise it has noise and a path of its own.
  RelaxedRun(const Problem<T>& problem, int groups, bool coupled, std::vector<double> temperatures);

  const RelaxedChoices& choices() const { return *relaxed_; }
  /// What the hard paths cost.
  PerChoice losses(Credit credit) const { return run_->losses(0, credit); }
  /// Of the loss of the relaxed paths at a temperature: -f(w~) grad log p(b) + grad f(w) - grad f(w~).
  AtLogits control(std::size_t temperature, Credit credit) const;
  /// Path term of the hard samples, and g at the logits of every choice, averaged over the groups.
  Var<T> surrogate(const AtLogits& g);
  Coupled<T>& run() { return *run_; }

 private:
  void relax(const Question<T>& question, const std::vector<Forking>& forking, Fork<T>& fork, Tape<T>& tape,
             Randomness& random);
  bool coupled_;
  std::vector<double> temperatures_;
  int members_;
  std::vector<std::vector<double>> free_, given_;       // [step][groups D, S] until the run is over
  std::vector<std::vector<std::vector<double>>> made_;  // [relaxed member][step][groups D, S] weights, likewise
  std::optional<RelaxedChoices> relaxed_;
  std::unique_ptr<Coupled<T>> run_;
  std::vector<AtLogits> weights_, slopes_;  // of the relaxed members, and of the losses in them
};

extern template class RelaxedRun<float>;
extern template class RelaxedRun<double>;

}  // namespace hardgrad
