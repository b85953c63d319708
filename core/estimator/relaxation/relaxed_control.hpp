// Control variates c(w) of relaxed choices w = softmax(z / temperature), whose noise z is that of the hard choice b.
//
// For any function c, given all earlier choices, the score term of a choice has the mean grad E[c(w)]:
//   E[ c(w~) grad log p(b) + grad c(w~) ] = grad E[c(w)] = E[ grad c(w) ],   w~ made of z~ ~ z | b, grad with the noise held
// so -c(w~) grad log p(b) + grad c(w) - grad c(w~)  has mean 0 and may be added to the gradient at the logits.
#pragma once

#include <optional>

#include "core/estimator/choices.hpp"
#include "core/estimator/coupling/coupled.hpp"

namespace hardgrad {

/// The hard choices b of a run with the noise z that produced them, and noise z~ drawn given b (or z again).
struct RelaxedChoices {
  std::shared_ptr<const ChoiceLayout> layout;
  std::vector<int> option;  ///< [choices] b
  const AtLogits &log_p, &p, &score;
  AtLogits free, given;  ///< z and z~

  /// w or w~ at a temperature.
  AtLogits weights(const AtLogits& z, double temperature) const;
  /// The weights w or w~ at which a function is differentiated, and its derivative there.
  struct Slope {
    const AtLogits &weights, &slope;
  };
  /// Gradients at the logits of a function of w, and of a function of w~.
  AtLogits through_free(double temperature, Slope at) const;
  AtLogits through_given(double temperature, Slope at) const;
  /// -c(w~) grad log p(b) + grad c(w) - grad c(w~), where `value` is c(w~).
  AtLogits control(double temperature, const PerChoice& value, Slope at_free, Slope at_given) const;
  /// The same if z~ = z, so that one slope serves both.
  AtLogits control(double temperature, const PerChoice& value, Slope at) const;
  /// The adjoint of `control` in the slope of c, for z~ = z: direction . slope = g . (grad c(w) - grad c(w~)) for every choice.
  AtLogits direction(double temperature, const AtLogits& g) const;

 private:
  AtLogits followed_by(const AtLogits& z) const;
  AtLogits given_the_choice(AtLogits with_noise_held) const;
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
  /// The control variate with c = the loss of the relaxed paths: -f(w~) grad log p(b) + grad f(w) - grad f(w~).
  AtLogits control(std::size_t temperature, Credit credit) const;
  /// The path term of the hard samples plus g at the logits of every choice, averaged over the groups.
  Var<T> surrogate(const AtLogits& g);
  Coupled<T>& run() { return *run_; }

 private:
  void relax(const Question<T>& question, const std::vector<Forking>& forking, Fork<T>& fork, Tape<T>& tape,
             Randomness& random);
  bool coupled_;
  std::vector<double> temperatures_;
  int members_;
  std::vector<std::vector<double>> free_, given_;       // [step][groups D, S]; empty after the run
  std::vector<std::vector<std::vector<double>>> made_;  // [relaxed member][step][groups D, S] weights, likewise
  std::optional<RelaxedChoices> relaxed_;
  std::unique_ptr<Coupled<T>> run_;
  std::vector<AtLogits> weights_, slopes_;  // weights of the relaxed members, and the slopes of their losses
};

extern template class RelaxedRun<float>;
extern template class RelaxedRun<double>;

}  // namespace hardgrad
