// sparsemax: attention by sparsemax instead of softmax, and the exact expectation over its support.
//
//   g = grad sum_{z: w(z) > 0} w(z) f(z),   w(z) = prod_t sparsemax(e_t)[z_t]
//
// Martins & Astudillo 2016, From softmax to sparsemax, eq. 2 (the projection) and sec. 2.5 (its Jacobian); Correia, Niculae,
// Aziz & Martins 2020, Efficient marginalization of discrete and structured latent variables via sparsity.
// Target: its own, the expected loss under the sparse distribution. Bias: none for it. Variance: none.
// Cost: the support's size per step if factorised, its paths if sequential.
#include "core/autodiff/softmax.hpp"

#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::estimators::sparsemax {
namespace {

/// One row for each option in the support, or for each set of them.
template <class T>
class SupportHandler final : public EnumerateHandler<T> {
 public:
  using EnumerateHandler<T>::EnumerateHandler;

 private:
  void visit(const Question<T>& question, int choice, std::vector<int>& to) const override {
    const auto& categories = question.categories();
    const T* logits = categories.logits().value().row(choice);
    const int options = categories.options()[choice];
    const double tau = sparsemax_threshold(logits, options);
    const auto before = to.size();
    for (int i = 0; i < options; ++i)
      if (static_cast<double>(logits[i]) > tau) to.push_back(i);
    if (to.size() == before) to.push_back(options - 1);  // if a logit is NaN: it must stay visible
  }
};

template <class T>
class Sparsemax final : public Estimator<T> {
 public:
  Sparsemax(const Settings&, const Structure&, Key) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    SupportHandler<T> handler(problem.model.structure(), problem.cap);
    return estimate_of(problem, handler, CostWeights::unknown, sparse_expected_loss<T>);
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "sparsemax",
    .summary = "attention by sparsemax, summed exactly over its support",
    .paper =
        "Martins & Astudillo 2016, From softmax to sparsemax; Correia et al. 2020, Efficient marginalization of "
        "discrete and structured latent variables via sparsity",
    .target = "sparsemax",
    .unbiased = true,
    .evaluations = "S; S^D if shared; S^T if joint",
    .needs = {need::categorical},
};
HARDGRAD_ESTIMATOR(Sparsemax, entry)

}  // namespace hardgrad::estimators::sparsemax
