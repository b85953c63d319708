// gumbel_softmax: choices relaxed to softmax weights of perturbed logits; the relaxed loss is differentiated.
//
//   g = 1/K sum_k grad f(w_k),   w = softmax((log p + Gumbel) / temperature)
//
// Jang, Gu & Poole 2017, Categorical reparameterization with Gumbel-softmax, eq. 2; Maddison, Mnih & Teh 2017, The
// concrete distribution. For two options only the difference of the Gumbels is drawn: one logistic number.
// Target: expected loss. Bias: that of the relaxed loss, which shrinks with the temperature while the variance grows.
// Cost: K rows.
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

namespace hardgrad::estimators::gumbel_softmax {
namespace {

using Config = RelaxationConfig;

template <class T>
class GumbelSoftmax final : public RelaxationEstimator<T> {
 public:
  GumbelSoftmax(const Config& config, const Structure&, Key) : RelaxationEstimator<T>(config.samples), config_(config) {}
  bool exchangeable() const override { return false; }

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    return {{}, context.softmax(context.gumbels(), config_.temperature)};
  }
  Config config_;
};

SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  return relaxed_mean(config.temperature, at, false);
}

}  // namespace

const EstimatorEntry entry = {
    .name = "gumbel_softmax",
    .summary = "choices relaxed to softmax weights of Gumbel-perturbed logits",
    .paper = "Jang, Gu & Poole 2017, Gumbel-softmax, eq. 2; Maddison, Mnih & Teh 2017, The concrete distribution",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::mean(expected), promise::mean(expected, "temperature=1.3"), promise::limit("temperature")},
    .infinite_variance = [](const Config&, const Structure& structure, double) { return no_variance_of_slopes(structure); },
    .closed_form = [](const Config&) { return ClosedForm::gumbel_softmax; },
};
HARDGRAD_ESTIMATOR(GumbelSoftmax, entry)

}  // namespace hardgrad::estimators::gumbel_softmax
