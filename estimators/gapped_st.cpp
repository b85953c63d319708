// gapped_st: straight-through with the logits moved just enough to agree with the choice, with a gap.
//
//   g = 1/K sum_k grad f(z_k) with dz/dlogits := dw/dlogits,   w = softmax((logits + m_1 - m_2) / temperature)
//   m_1 = (max logits - logits_z) on the chosen option, m_2 = max(0, logits + gap - max logits) on the others
//
// Fan, Chi, Rudnicky & Ramadge 2022, Training discrete deep generative models via gapped straight-through estimator:
// it replaces the noise of st_gumbel by deterministic moves m_1 and m_2, which are constants in the derivative.
// Target: expected loss. Bias: yes. Cost: K rows.
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

#include <algorithm>

namespace hardgrad::estimators::gapped_st {
namespace {

struct Config {
  int samples = 1;
  double temperature = 1, gap = 1;

  void declare(Fields& field) {
    samples_field(field, samples);
    temperature_field(field, temperature);
    field(gap, "gap", 0, 1e6, "least distance between the chosen logit and the others");
  }
};

template <class T>
class GappedSt final : public RelaxationEstimator<T> {
 public:
  GappedSt(const Config& config, const Structure&, Key) : RelaxationEstimator<T>(config.samples), config_(config) {}

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    auto option = context.draw();
    auto moves = context.constants([&](std::size_t r, std::span<double> move) {
      const double most = *std::max_element(move.begin(), move.end());
      for (int i = 0; i < static_cast<int>(move.size()); ++i)
        move[i] = i == option[r] ? most - move[i] : -std::max(0.0, move[i] + config_.gap - most);
    });
    return straight_through(context, std::move(option), context.softmax(moves, config_.temperature));
  }
  Config config_;
};

// sum_z p(z) J(w) f'(z) / temperature; in w the chosen logit is raised to the highest, and the others are at least `gap` below
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  const double temperature = config.temperature, gap = config.gap, top = at.logits.max();
  return at.mean([&](std::size_t z) -> SmallChoice::Vector {
    auto moved = at;
    for (std::size_t i = 0; i < moved.logits.size(); ++i) moved.logits[i] = i == z ? top : std::min(at.logits[i], top - gap);
    return through_softmax(moved.p(temperature), at.slope(at.one_hot(z))) / temperature;
  });
}

}  // namespace

const EstimatorEntry entry = {
    .name = "gapped_st",
    .summary = "straight-through with logits moved to agree with the choice, with a gap",
    .paper =
        "Fan, Chi, Rudnicky & Ramadge 2022, Training discrete deep generative models via gapped straight-through estimator",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::mean(expected), promise::mean(expected, "temperature=0.7,gap=0.4")},
    .closed_form = [](const Config&) { return ClosedForm::gapped_st; },
};
HARDGRAD_ESTIMATOR(GappedSt, entry)

}  // namespace hardgrad::estimators::gapped_st
