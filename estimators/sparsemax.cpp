// sparsemax: attention by sparsemax instead of softmax, and the exact expectation over its support.
//
//   g = grad sum_{z: w(z) > 0} w(z) f(z),   w(z) = prod_t sparsemax(e_t)[z_t]
//
// Martins & Astudillo 2016, From softmax to sparsemax, eq. 2 (the projection) and sec. 2.5 (its Jacobian); Correia, Niculae,
// Aziz & Martins 2020, Efficient marginalization of discrete and structured latent variables via sparsity.
// Target: its own, the expected loss under the sparse distribution. Bias: none for it. Variance: none.
// Cost: the support's size per step if factorised, its paths if sequential.
#include "core/autodiff/sparsemax.hpp"

#include <fmt/format.h>

#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad {
namespace {

/// One row per option in the support.
template <class T>
class SupportChooser final : public Chooser<T> {
 public:
  explicit SupportChooser(double cap) : cap_(cap) {}
  Choice<T> choose(Tape<T>&, const Question<T>& question) override {
    const auto logits = question.logits.value();
    std::vector<int> parent, option;
    for (std::size_t r = 0; r < logits.rows; ++r) {
      const int options = question.site.options[r];
      const double tau = sparsemax_threshold(logits.row(r), options);
      bool empty = true;  // as it is where a logit is no number: that must stay visible
      for (int i = 0; i < options; ++i)
        if (static_cast<double>(logits(r, i)) > tau || (empty && i + 1 == options)) {
          empty = false;
          parent.push_back(static_cast<int>(r));
          option.push_back(i);
        }
    }
    if (static_cast<double>(parent.size()) > cap_)
      throw UsageError(
          fmt::format("sparsemax: choice {} has {} rows in its support, more than the cap of {:.6g}: take "
                      "fewer steps, options or examples, or raise the cap",
                      question.step + 1, parent.size(), cap_));
    return {Rows::after(question.site.rows, std::move(parent), question.step), std::move(option), {}};
  }

 private:
  double cap_;
};

template <class T>
class Sparsemax final : public Estimator<T> {
 public:
  Sparsemax(const Settings& settings, const Structure&, Key) : cap_(settings.real("cap")) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    SupportChooser<T> chooser(cap_);
    auto episode = problem.run(chooser);
    auto loss = sparse_expected_loss(*episode);
    return {.surrogate = loss, .episode = std::move(episode), .loss = static_cast<double>(loss.item())};
  }

 private:
  double cap_;
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
    .evaluations = "support per step; its paths if sequential",
    .parameters = {ParameterInfo::real("cap", 1e6, 1, 1e12, "most rows of one choice's support; beyond it is an error")},
    .needs = {need::categorical, need::one_column},
};
HARDGRAD_ESTIMATOR(Sparsemax, entry)

}  // namespace hardgrad
