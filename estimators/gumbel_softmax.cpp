// gumbel_softmax: choices relaxed to softmax weights of perturbed logits; the relaxed loss is differentiated.
//
//   g = 1/K sum_k grad f(w_k),   w = softmax((log p + Gumbel) / temperature)
//
// Jang, Gu & Poole 2017, Categorical reparameterization with Gumbel-softmax, eq. 2; Maddison, Mnih & Teh 2017, The
// concrete distribution. For two options only the difference of the Gumbels is drawn: one logistic number.
// Target: expected loss. Bias: that of the relaxed loss, which shrinks with the temperature while the variance grows.
// Cost: K rows.
#include "core/estimator/relaxation/relaxation.hpp"
#include "core/estimator/relaxation/relaxed_mean.hpp"
#include "core/estimator/relaxation/rough_losses.hpp"

namespace hardgrad::estimators::gumbel_softmax {
namespace {

template <class T>
class GumbelSoftmax final : public RelaxationEstimator<T> {
 public:
  GumbelSoftmax(const Settings& settings, const Structure&, Key)
      : RelaxationEstimator<T>(settings), temperature_(settings.real("temperature")) {}
  bool exchangeable() const override { return false; }

 private:
  Relaxed<T> relax(const Relaxing<T>& asked) const override { return {{}, asked.softmax(asked.gumbels(), temperature_)}; }
  double temperature_;
};

SmallChoice::Vector expected(const Settings& settings, const SmallChoice& at) { return relaxed_mean(settings, at, false); }

}  // namespace

const EstimatorEntry entry = {
    .name = "gumbel_softmax",
    .summary = "choices relaxed to softmax weights of Gumbel-perturbed logits",
    .paper = "Jang, Gu & Poole 2017, Gumbel-softmax, eq. 2; Maddison, Mnih & Teh 2017, The concrete distribution",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = {samples_parameter(), temperature_parameter(0.5)},
    .needs = {need::relaxable},
    .promises = {promise::mean(expected), promise::mean(expected, "temperature=1.3"), promise::limit("temperature")},
    .infinite_variance = [](const Settings&, const Structure& structure, double) { return no_variance_of_slopes(structure); },
};
HARDGRAD_ESTIMATOR(GumbelSoftmax, entry)

}  // namespace hardgrad::estimators::gumbel_softmax
