// straight_through: a hard choice going forward, its probabilities going backward.
//
//   g = 1/K sum_k grad f(z_k) with dz/dlogits := dp/dlogits
//
// Bengio, Leonard & Courville 2013, Estimating or propagating gradients through stochastic neurons for conditional
// computation (the straight-through estimator that keeps the derivative of the sigmoid; here of the softmax).
// Target: expected loss. Bias: of first order in f's curvature; for one bit and f(b) = (b - t)^2 it is p (1 - p) (2p - 1).
// Exact where f is linear in every choice and no choice feeds later ones. Cost: K rows.
#include "core/estimator/relaxation/relaxation.hpp"

namespace hardgrad {
namespace {

template <class T>
class StraightThrough final : public RelaxationEstimator<T> {
 public:
  StraightThrough(const Settings& settings, const Structure&, Key) : RelaxationEstimator<T>(settings) {}

 private:
  Relaxed<T> relax(const Relaxing<T>& asked) const override { return straight_through(asked, asked.draw(), asked.softmax()); }
};

// sum_z p(z) J(p) f'(z)
SmallChoice::Vector expected(const Settings&, const SmallChoice& at) {
  return at.mean([&](std::size_t z) { return through_softmax(at.p(), at.slope(at.one_hot(z))); });
}

}  // namespace

const EstimatorEntry entry = {
    .name = "straight_through",
    .summary = "hard choices going forward, their probabilities going backward",
    .paper = "Bengio, Leonard & Courville 2013, Estimating or propagating gradients through stochastic neurons",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = {samples_parameter()},
    .needs = {need::relaxable},
    .promises = {promise::mean(expected), promise::noiseless(Promise::Loss::linear)},
};
HARDGRAD_ESTIMATOR(StraightThrough, entry)

}  // namespace hardgrad
