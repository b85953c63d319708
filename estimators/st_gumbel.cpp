// st_gumbel: the hard choice of perturbed logits in the forward pass, its Gumbel-softmax relaxation in the backward pass.
//
//   g = 1/K sum_k grad f(z_k) with dz/dlogits := dw/dlogits
//   z = one_hot(argmax(log p + G)),   w = softmax((log p + G) / temperature),   G Gumbel noise
//
// Jang, Gu & Poole 2017, Categorical reparameterization with Gumbel-softmax, sec. 2.2 (straight-through Gumbel-softmax).
// Target: expected loss. Bias: yes; it does not vanish as the temperature falls. Cost: K rows.
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

namespace hardgrad::estimators::st_gumbel {
namespace {

using Config = RelaxationConfig;

template <class T>
class StGumbel final : public RelaxationEstimator<T> {
 public:
  StGumbel(const Config& config, const Structure&, Key) : RelaxationEstimator<T>(config.samples), config_(config) {}
  bool exchangeable() const override { return false; }

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    std::vector<int> option;
    auto soft = context.softmax(context.gumbels(&option), config_.temperature);
    return straight_through(context, std::move(option), soft);
  }
  Config config_;
};

SmallChoice::Vector expected(const Config& config, const SmallChoice& at) { return relaxed_mean(config.temperature, at, true); }

}  // namespace

const EstimatorEntry entry = {
    .name = "st_gumbel",
    .summary = "hard Gumbel-max choices in the forward pass, their Gumbel-softmax in the backward pass",
    .paper = "Jang, Gu & Poole 2017, Categorical reparameterization with Gumbel-softmax, sec. 2.2",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::mean(expected), promise::mean(expected, "temperature=1.3")},
    .closed_form = [](const Config&) { return ClosedForm::st_gumbel; },
};
HARDGRAD_ESTIMATOR(StGumbel, entry)

}  // namespace hardgrad::estimators::st_gumbel
