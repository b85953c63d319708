// soft: the deterministic network. Every choice is replaced by its expectation, and the loss is differentiated.
//
//   g = grad f(E_p[z])
//
// Bahdanau et al. 2015, Neural machine translation by jointly learning to align and translate, eq. 5; the deterministic
// "soft" attention of Xu et al. 2015, sec. 4.2.
// Target: the soft network's loss. Bias: none for it (biased for the expected loss). Variance: none. Cost: 1 row.
#include <limits>

#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad {
namespace {

template <class T>
class Soft final : public Estimator<T> {
 public:
  Soft(const Settings&, const Structure&, Key) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    return exact_objective(this->target(), problem, std::numeric_limits<double>::infinity());
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "soft",
    .summary = "soft attention: the deterministic network fed with expected choices",
    .paper = "Bahdanau et al. 2015, eq. 5; Xu et al. 2015, sec. 4.2",
    .target = "soft",
    .unbiased = true,
    .evaluations = "1",
    .needs = {need::relaxable, need::no_choice},
};
HARDGRAD_ESTIMATOR(Soft, entry)

}  // namespace hardgrad
