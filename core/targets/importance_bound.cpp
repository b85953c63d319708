// importance_bound: -E_q(z_1..z_K)[log 1/K sum_k p(z_k) exp(-f(z_k)) / q(z_k)], the K-sample bound.
//
// Burda, Grosse & Salakhutdinov 2016, Importance weighted autoencoders. The exact form is a sum over multisets of samples with
// multinomial weights, since the order of the samples does not matter.
#include <fmt/format.h>

#include "core/estimator/enumeration/outcome_objectives.hpp"
#include "core/support/log_gamma.hpp"

namespace hardgrad::targets::importance_bound {
namespace {

struct Config {
  int samples = 1;
  void declare(Fields& field) { field(samples, "samples", 1, 1e6, "number of samples K"); }
};

template <class T>
Estimate<T> objective(const Target& target, const Problem<T>& problem) {
  const int samples = read<Config>(target.settings()).samples;
  return enumerated_outcomes<T>(problem, false,
                                [&](const auto& outcomes) { return hardgrad::importance_bound(outcomes, samples); });
}
template <class T>
std::vector<double> terms(const Target& target, const Model<T>& model, const Batch& batch) {
  auto count = model.outcomes(batch);
  for (auto& n : count) n = multisets(n, read<Config>(target.settings()).samples);
  return count;
}

}  // namespace

const TargetEntry entry = {
    .name = "importance_bound",
    .summary = "-E_q[log 1/K sum_k p(z_k) exp(-f(z_k)) / q(z_k)]: the K-sample bound",
    .parameters = declared<Config>(),
    .terms = drawn_from_posterior,
    .likelihood = true,
    .counted = "multisets of samples",
    .reference_estimator = [](const Target& target) -> std::string {  // with one sample it is the ELBO
      const int samples = read<Config>(target.settings()).samples;
      return samples > 1 ? fmt::format("vimco[samples={}]", samples) : "rloo[samples=16,target=elbo]";
    },
};
HARDGRAD_TARGET(importance_bound, objective, terms, entry)

}  // namespace hardgrad::targets::importance_bound
