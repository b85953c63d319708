// reinforce: the score-function estimator with a constant baseline.
//
//   g = 1/K sum_k [ (f_k - b) grad log p(z_k) + grad f_k ]
//
// Williams 1992, Simple statistical gradient-following algorithms, eq. 11 (the episodic form of his sec. 5 for several
// choices). With reward_to_go a choice is credited only with the costs it can change.
// Target: expected loss. Bias: none. Cost: K rows.
#include "core/estimator/score_function.hpp"

#include "core/autodiff/elementwise.hpp"

namespace hardgrad {
namespace {

template <class T>
class Reinforce final : public Estimator<T> {
 public:
  Reinforce(const Settings& settings, const Structure&, Key)
      : samples_(settings.integer("samples")), baseline_(settings.real("baseline")), credit_(credit_of(settings)) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, samples_);
    std::vector<std::vector<double>> signal;
    for (int t = 0; t < sampled.steps(); ++t) {
      signal.push_back(sampled.returns(t, credit_));
      for (auto& f : signal.back()) f -= baseline_;
    }
    auto surrogate = add(sampled.score(signal), sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
  }

 private:
  int samples_;
  double baseline_;
  Credit credit_;
};

}  // namespace

HARDGRAD_ESTIMATOR(Reinforce, {
  .name = "reinforce",
  .summary = "score function with a constant baseline",
  .paper = "Williams 1992, Simple statistical gradient-following algorithms for connectionist reinforcement learning",
  .target = Target::Kind::expected_loss,
  .unbiased = true,
  .evaluations = "K",
  .parameters = {samples_parameter(),
                 ParameterInfo::real("baseline", 0, -1e12, 1e12, "constant taken off the loss"),
                 credit_parameter()},
})

}  // namespace hardgrad
