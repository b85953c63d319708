// exact: the gradient of the expected loss itself, every choice enumerated.
//
//   g = grad sum_z p(z) f(z)
//
// Factorised models take S rows per step. Sequential ones form a tree of S^T leaves, whose prefixes are computed once.
// Target: L_s = E_p[f]. Bias: none. Variance: none.
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::estimators::exact {
namespace {

template <class T>
class Exact final : public Estimator<T> {
 public:
  Exact(const Settings&, const Structure&, Key) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    return exact_objective(this->target(), problem, problem.cap);
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "exact",
    .summary = "enumerates every choice: the gradient of the expected loss itself",
    .paper = "Definition; the expected loss L_s of Xu et al. 2015, Show, Attend and Tell, sec. 4.1",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "S; S^D if shared; S^T if joint",
    .needs = {need::enumerable},
};
HARDGRAD_ESTIMATOR(Exact, entry)

}  // namespace hardgrad::estimators::exact
