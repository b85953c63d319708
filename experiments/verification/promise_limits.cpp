#include <cmath>

#include "experiments/measurement/measure.hpp"
#include "experiments/verification/promises.hpp"
#include "experiments/verification/test_models.hpp"

namespace hardgrad::verification {
namespace {

/// Extrapolates y, a power series in x, to x = 0 (Neville's scheme). The error is that of the last step.
std::pair<double, double> extrapolated(const std::vector<double>& x, std::vector<double> y) {
  double before = y.back();
  for (std::size_t order = 1; order < x.size(); ++order) {
    before = y.back();
    for (std::size_t i = x.size() - 1; i >= order; --i) y[i] = (x[i - order] * y[i] - x[i] * y[i - 1]) / (x[i - order] - x[i]);
  }
  return {y.back(), std::abs(y.back() - before)};
}

/// Extrapolates the bias to the limit of a setting: 0, or infinity for numbers of samples. There the bias should vanish. With
/// `samples`, the bias of the reported loss should vanish, too.
void drawn_out(Trials& trials, const std::vector<double>& values, bool samples) {
  const TestNetwork network{2};
  std::vector<double> x;
  std::vector<std::vector<double>> bias;  // [P][values]
  double scale = 1;
  for (const double value : values) {
    const auto trial = trials.make(network, trials.tested().with(trials.promise.parameter, fmt::format("{}", value)));
    if (!trial) return;
    const auto moments = trial->moments();
    bias.resize(moments.mean.size() + samples);
    for (std::size_t i = 0; i < moments.mean.size(); ++i) bias[i].push_back(moments.mean[i] - trial->truth.gradient[i]);
    if (samples) bias.back().push_back(moments.loss - trial->truth.value);
    x.push_back(samples ? 1 / value : value);
    scale = trial->scale();
  }
  double first = 0, last = 0, doubt = 0;
  for (const auto& of : bias) {
    const auto [at_end, error] = extrapolated(x, of);
    first = std::max(first, std::abs(of.front()) / scale);
    last = std::max(last, std::abs(at_end) / scale);
    doubt = std::max(doubt, error / scale);
  }
  const auto finding = fmt::format("relative bias {:.2g} at {}, {:.1g} in the limit (good to {:.1g})", first, values.front(),
                                   last, std::max(doubt, 1e-15));
  trials.add(network.text(), last > 1e-5 ? finding : "", finding);
}

/// For networks with dreams, which the small model does not have: by draws, with many samples.
void nearly_unbiased(Trials& trials) {
  constexpr int many = 256, draws = 2000, of_loss = 100;
  const auto spec = trials.tested().with(trials.promise.parameter, std::to_string(many));
  for (const auto& tested : test_models()) {
    if (!why_unsupported(spec, tested.model->structure()).empty()) continue;
    const auto estimator = make_estimator<double>(spec, tested.model->structure(), Key(1));
    const auto measured = measurement::measure(spec, *estimator, *tested.model, tested.batch, {.replicates = draws}, Key(8));
    double loss = 0;
    for (std::uint64_t i = 0; i < of_loss; ++i)
      loss += estimate_of(*estimator, *tested.model, tested.batch, Key(8) / i).back() / of_loss;
    const double
        bias = measured.relative_bias,
        off = std::abs(
            loss / measurement::exact_reference(estimator->target(), *tested.model, tested.batch, trial_outcome_cap).value - 1);
    const auto message = fmt::format("relative bias {:.2g}, of the loss {:.2g}, at {} ({} draws)", bias, off, many, draws);
    trials.add(tested.name, bias <= 0.1 && off <= 0.1 ? "" : message, message);
  }
}

void best_constant_on(Trials& trials, const TestNetwork& network) {
  const auto& promise = trials.promise;
  std::vector<double> x, y;
  double least = 0;
  for (const int samples : {6, 8, 12, 16, 24, 32}) {
    const auto trial = trials.make(network, trials.tested().with("samples", std::to_string(samples)));
    if (!trial) return;
    if (x.empty()) {  // the variance is a parabola in the constant
      double v[3];
      for (int c = 0; c < 3; ++c) {
        const auto constant = Spec::parse(promise.other).with(promise.parameter, std::to_string(c)).with("samples", "1");
        v[c] = trial->moments(*make_estimator<double>(constant, trial->model->structure(), Key(1))).trace;
      }
      const double square = (v[2] - 2 * v[1] + v[0]) / 2, line = v[1] - v[0] - square;
      least = v[0] - line * line / (4 * square);
    }
    x.push_back(1.0 / samples);
    y.push_back(samples * trial->moments().trace);
  }
  const auto [at_end, error] = extrapolated(x, y);
  const auto found =
      fmt::format("variance of one of many samples {:.5g} (good to {:.1g}), the least {:.5g}", at_end, error, least);
  trials.add(network.text(), at_end > least * (1 + 1e-3) ? found : "", found);
}

}  // namespace

void consistent(Trials& trials) {
  drawn_out(trials, {24, 32, 48, 64, 96, 128, 192, 256}, true);
  if (!trials.any()) nearly_unbiased(trials);
}

void limit(Trials& trials) { drawn_out(trials, {0.16, 0.12, 0.08, 0.06, 0.04, 0.03, 0.02}, false); }

void best_constant(Trials& trials) {
  for (const auto& network : {TestNetwork{3}, TestNetwork{2, 2}}) best_constant_on(trials, network);
}

}  // namespace hardgrad::verification
