// path_only: the derivative with the choices held fixed, as if the units that choose were constants.
//
//   g = 1/K sum_k grad f(z_k),   z_k ~ p,   dz/dlogits := 0
//   hard_threshold=true: z = argmax p: a bit is a threshold unit [p > 1/2], an option an argmax unit; K = 1
//
// What automatic differentiation returns for a network that draws, or compares, and takes the answer as data. No paper proposes
// it: it is the second term of the score function's estimate (reinforce.cpp), without the first.
// Target: expected loss. Bias: all that reaches the loss through the choices: the gradient at the logits is 0, so parameters that
// act on the choices alone never learn; with hard_threshold the loss is also that of the most probable choices. Exact at the
// other parameters if choices are drawn. Divergences of the target keep their gradient. Cost: K rows; 1 with hard_threshold.
#include "core/choice/handlers.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::path_only {
namespace {

struct Config {
  int samples = 1;
  bool hard_threshold = false;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(hard_threshold, "hard_threshold",
          "take the most probable option: threshold units (bits) and argmax units, without noise");
  }
};

template <class T>
class PathOnly final : public Estimator<T> {
 public:
  PathOnly(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    if (config_.hard_threshold) {
      GreedyHandler<T> most_probable;
      return path_estimate(problem, 1, most_probable);
    }
    SampleHandler<T> drawn(config_.samples, problem.random, problem.batch.id);
    return path_estimate(problem, config_.samples, drawn);
  }

 private:
  Config config_;
};

SmallChoice::Vector none(const Config&, const SmallChoice& at) { return SmallChoice::Vector(0.0, at.logits.size()); }

}  // namespace

const EstimatorEntry entry = {
    .name = "path_only",
    .summary = "choices held fixed in the derivative: parameters that act through them alone never learn",
    .paper = "none: what automatic differentiation returns for a choice",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K; 1 if hard_threshold",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::mean(none), promise::unshifted()},
};
HARDGRAD_ESTIMATOR(PathOnly, entry)

}  // namespace hardgrad::estimators::path_only
