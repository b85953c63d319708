#include "experiments/verification/promises.hpp"

#include "core/autodiff/tape.hpp"
#include "experiments/verification/test_models.hpp"

namespace hardgrad::verification {
namespace {

/// 3,000 learning steps.
void learn(const Trial& trial) {
  auto& own = trial.estimator->own_parameters();
  std::vector<double> g(own.size());
  Tape<double> tape;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    KeyedRandomness random(Key(7) / i);
    tape.clear();
    const auto batch = one_example();
    auto estimate =
        trial.estimator->draw({.tape = tape, .model = *trial.model, .batch = batch, .random = random, .learning = true});
    trial.estimator->learn(estimate);
    if (!estimate.own_loss) continue;
    differentiate(estimate.own_loss, own, g);
    std::size_t k = 0;
    for (auto& parameter : own)
      for (auto& value : parameter.value) value -= 0.01 * g[k++];
  }
}

}  // namespace

void noiseless(Trials& trials) {
  const bool constant = trials.promise.loss == Promise::Loss::constant;
  std::vector<TestNetwork> networks = {{2}, {3}, {2, 2}, {2, 2, 0.9, {.per_column = true}}};
  for (auto& network : networks) {
    network.alike = true;
    network.loss = {constant ? 1.3 : 0.4, constant ? 0.0 : 1.0, 0, false, network.loss.per_column};
  }
  trials.on_networks(networks, [&](const Trial& trial) {
    double allowed = 1e-20;
    if (trials.promise.learned) {
      perturb_state(*trial.estimator);
      allowed = 1e-4 * trial.moments().trace;
      learn(trial);
    }
    const double trace = trial.moments().trace;
    return finding(trace <= allowed, fmt::format("variance {:.1e}", trace));
  });
}

void unshifted(Trials& trials) {
  for (int options : {3, 2, 0}) {
    const auto plain = shifted(options, 0), moved = shifted(options, 10);
    const auto spec = trials.tested();
    if (const auto why = why_unsupported(spec, plain.model->structure()); !why.empty()) {
      trials.skip(moved.name, why);
      continue;
    }
    const auto estimator = make_estimator<double>(spec, plain.model->structure(), Key(1));
    double off = 0, size = 0;
    for (std::uint64_t i = 0; i < 20; ++i) {
      const auto before = gradient_of(*estimator, *plain.model, plain.batch, Key(6) / i);
      off = std::max(off, largest_difference(gradient_of(*estimator, *moved.model, moved.batch, Key(6) / i), before));
      size = std::max(size, measurement::largest(before));
    }
    const auto [failure, detail] = within(off / std::max(1.0, size), 1e-9, "20 estimates");
    trials.add(moved.name, failure, detail);
  }
}

}  // namespace hardgrad::verification
