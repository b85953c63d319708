// sparsemax: attention by sparsemax, or another entmax, instead of softmax, and the exact expectation over its support.
//
//   g = grad sum_{z: w(z) > 0} w(z) f(z),   w(z) = prod_t entmax(e_t)[z_t]
//   entmax(e)_i = max((alpha - 1) e_i - tau, 0)^(1 / (alpha - 1)), which sums to 1; alpha = 2 is sparsemax, 1.5 entmax-1.5
//
// Martins & Astudillo 2016, From softmax to sparsemax, eq. 2 (the projection) and sec. 2.5 (its Jacobian); Correia, Niculae,
// Aziz & Martins 2020, Efficient marginalization of discrete and structured latent variables via sparsity. entmax: Peters,
// Niculae & Martins 2019, Sparse sequence-to-sequence models. Departure: tau by Newton's method, without sorting.
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
  SupportHandler(const Structure& structure, double cap, double alpha) : EnumerateHandler<T>(structure, cap), alpha_(alpha) {}

 private:
  void visit(const Question<T>& question, int choice, std::vector<int>& to) const override {
    const auto& categories = question.categories();
    const T* logits = categories.logits().value().row(choice);
    const int options = categories.options()[choice];
    const double tau = entmax_threshold(logits, options, alpha_);
    const auto before = to.size();
    for (int i = 0; i < options; ++i)
      if (entmax_weight(static_cast<double>(logits[i]), tau, alpha_) > 0) to.push_back(i);
    if (to.size() == before) to.push_back(options - 1);  // if a logit is NaN: it must stay visible
  }
  double alpha_;
};

struct Config {
  double alpha = 2;
  void declare(Fields& field) {
    field(alpha, "alpha", least_entmax_alpha, 2, "of the entmax: 2 is sparsemax, 1.5 entmax-1.5").absent_means(2);
  }
};

template <class T>
class Sparsemax final : public Estimator<T> {
 public:
  Sparsemax(const Config& config, const Structure&, Key) : alpha_(config.alpha) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    SupportHandler<T> handler(problem.model.structure(), problem.cap, alpha_);
    return estimate_of(problem, handler, CostWeights::unknown,
                       [this](Episode<T>& episode) { return sparse_expected_loss(episode, alpha_); });
  }

 private:
  double alpha_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "sparsemax",
    .summary = "attention by sparsemax or entmax, summed exactly over its support",
    .paper =
        "Martins & Astudillo 2016, From softmax to sparsemax; Correia et al. 2020, Efficient marginalization of "
        "discrete and structured latent variables via sparsity; Peters, Niculae & Martins 2019, Sparse "
        "sequence-to-sequence models (entmax)",
    .target = "sparsemax",
    .target_of = [](const Config& config) { return "sparsemax[alpha=" + to_string(config.alpha) + "]"; },
    .unbiased = true,
    .evaluations = "S; S^D if shared; S^T if joint",
    .parameters = declared<Config>(),
    .needs = {need::categorical},
};
HARDGRAD_ESTIMATOR(Sparsemax, entry)

}  // namespace hardgrad::estimators::sparsemax
