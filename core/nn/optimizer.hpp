// Optimisers: they turn a gradient into a step. State is flat, in the parameter set's order.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autodiff/parameter.hpp"

namespace hardgrad {

struct OptimizerSettings {
  std::string name = "adam";  ///< sgd | rmsprop | adam
  double learning_rate = 1e-3;
  double momentum = 0;                                ///< of sgd
  double decay = 0.99;                                ///< rmsprop's average of squares
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< adam's; epsilon also rmsprop's
  double weight_decay = 0;            ///< decoupled: each step takes this times the learning rate off every parameter
  double clip = 0;                    ///< largest norm of the gradient; 0 is no limit
  std::string schedule = "constant";  ///< constant | linear | cosine | step: of the learning rate, down to `floor`
  double floor = 0;                   ///< the learning rate at the end, as a share of the first
  double drop = 0.5;                  ///< step: factor applied
  int drop_every = 0;                 ///< step: every so many steps
  int warmup = 0;                     ///< steps of linear increase at the start
  int total_steps = 0;                ///< the horizon of linear and cosine

  /// Whether the schedule needs that horizon, which must then lie beyond the warm-up.
  bool has_horizon() const { return schedule == "linear" || schedule == "cosine"; }
};

template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Moves the parameters against the gradient [set.size()]; clips it first. Throws Error if it is not finite.
  virtual void step(ParameterSet<T>& set, std::span<T> gradient) = 0;
  /// Everything needed to go on elsewhere: step count and averages.
  virtual std::vector<double> state() const = 0;
  virtual void restore(const std::vector<double>& state) = 0;
};

/// Throws UsageError on an unknown name or schedule.
template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerSettings& settings, std::size_t parameters);

/// Two rules: `of_part` for the parameters of that name, and for those whose names begin with it and a dot ("prior":
/// "prior.logits"), `settings` for the others. The norm that is clipped is that of the whole gradient, by `settings`.
/// UsageError if no parameter is of the part.
template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerSettings& settings, OptimizerSettings of_part,
                                             const std::string& part, const ParameterSet<T>& set);

/// The learning rate at a step, counted from 0.
double learning_rate(const OptimizerSettings& settings, int step);

}  // namespace hardgrad
