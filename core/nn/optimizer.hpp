// Optimisers turn a gradient into a step. Their state is flat, in the parameter set's order.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/autodiff/parameter.hpp"
#include "core/random/key.hpp"
#include "core/support/named.hpp"

namespace hardgrad {

enum class UpdateRule { sgd, rmsprop, adam };
inline constexpr Named<UpdateRule> update_rules[] = {
    {"sgd", UpdateRule::sgd}, {"rmsprop", UpdateRule::rmsprop}, {"adam", UpdateRule::adam}};

/// Of the learning rate, from its first value down to `floor` times it.
enum class RateSchedule { constant, linear, cosine, step };
inline constexpr Named<RateSchedule> rate_schedules[] = {{"constant", RateSchedule::constant},
                                                         {"linear", RateSchedule::linear},
                                                         {"cosine", RateSchedule::cosine},
                                                         {"step", RateSchedule::step}};

struct OptimizerSettings {
  UpdateRule rule = UpdateRule::adam;
  double learning_rate = 1e-3;
  double momentum = 0;                                ///< for sgd and rmsprop
  double decay = 0.99;                                ///< for rmsprop: decay of the averages
  bool centred = false;                               ///< for rmsprop: divide by the deviation, not by the root of the squares
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  ///< for adam; epsilon also for rmsprop
  double weight_decay = 0;  ///< decoupled: each step subtracts this times the learning rate times the parameter
  double clip_value = 0;    ///< largest absolute value of an entry of the gradient; 0: no limit
  double clip = 0;          ///< largest norm of the gradient, after that; 0: no limit
  /// Variance of Gaussian noise added to every entry of the (clipped) gradient at the first step; at step t = 0 .. it is
  /// gradient_noise / (1 + t)^0.55 (Neelakantan et al. 2016, Adding gradient noise improves learning for very deep networks).
  double gradient_noise = 0;
  Key noise = Key();  ///< of this noise
  RateSchedule schedule = RateSchedule::constant;
  double floor = 0;     ///< final learning rate, relative to the first
  double drop = 0.5;    ///< for step: the factor
  int drop_every = 0;   ///< for step: number of steps between drops
  int warmup = 0;       ///< steps of linear increase at the start
  int total_steps = 0;  ///< horizon of linear and cosine

  /// True if the schedule needs `total_steps`, which must then exceed `warmup`.
  bool has_horizon() const { return schedule == RateSchedule::linear || schedule == RateSchedule::cosine; }
};

template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Clips the gradient [set.size()], adds noise to it, and moves the parameters against it. Throws Error if it is not finite.
  virtual void step(ParameterSet<T>& set, std::span<T> gradient) = 0;
  /// The state for resuming: step count and averages.
  virtual std::vector<double> state() const = 0;
  virtual void restore(const std::vector<double>& state) = 0;
};

/// The sum of the squares, in double.
template <class T>
double squared_norm(std::span<const T> x);

/// UsageError if the schedule lacks a setting that it needs.
template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerSettings& settings, std::size_t parameters);

/// Two rules: `of_part` for the parameters of that name and those whose names begin with
/// it and a dot ("prior": "prior.logits"), `settings` for the others. The whole gradient
/// is clipped and gets its noise by `settings`. UsageError if no parameter matches.
template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const OptimizerSettings& settings, OptimizerSettings of_part,
                                             const std::string& part, const ParameterSet<T>& set);

/// The learning rate at a step, counted from 0.
double learning_rate(const OptimizerSettings& settings, int step);

}  // namespace hardgrad
