#include "core/estimator/estimator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>

namespace hardgrad {

std::string to_string(Target::Kind kind) {
  switch (kind) {
    case Target::Kind::expected_loss: return "expected_loss";
    case Target::Kind::marginal_likelihood: return "marginal_likelihood";
    case Target::Kind::elbo: return "elbo";
    case Target::Kind::regularised: return "regularised";
    case Target::Kind::sparsemax: return "sparsemax";
    case Target::Kind::soft: return "soft";
    case Target::Kind::importance_bound: return "importance_bound";
    case Target::Kind::wake: return "wake";
    case Target::Kind::wake_sleep: return "wake_sleep";
    case Target::Kind::thermodynamic: return "thermodynamic";
  }
  throw Bug("unknown target");
}

std::string to_string(const Target& target) {
  switch (target.kind) {
    case Target::Kind::regularised:
      return fmt::format("regularised[lambda_r={},lambda_e={},semi={}]", target.lambda_r, target.lambda_e, target.semi);
    case Target::Kind::importance_bound: return fmt::format("importance_bound[samples={}]", target.samples);
    case Target::Kind::thermodynamic:
      return fmt::format("thermodynamic[partition={}]", fmt::join(target.partition, ";"));
    default: return to_string(target.kind);
  }
}

bool needs_outcomes(Target::Kind kind) {
  return kind == Target::Kind::importance_bound || kind == Target::Kind::wake || kind == Target::Kind::wake_sleep ||
         kind == Target::Kind::thermodynamic;
}

bool needs_posterior(Target::Kind kind) { return kind == Target::Kind::elbo || needs_outcomes(kind); }

bool claims_unbiased(const Spec& spec) {
  const auto& entry = Estimators::instance().at(spec.name);
  return entry.unbiased && !(entry.biased_by && entry.biased_by(Settings(entry.name, entry.parameters, spec)));
}

std::string unsupported(const Spec& spec, const Structure& structure) {
  const auto& entry = Estimators::instance().at(spec.name);
  const Settings settings(entry.name, entry.parameters, spec);
  if (structure.dependence == Dependence::deterministic && entry.target != Target::Kind::soft)
    return "the model makes no choice";
  if (entry.posterior && !structure.posterior) return "the model has no learned posterior";
  return entry.unsupported ? entry.unsupported(settings, structure) : "";
}

template <class T>
std::unique_ptr<Estimator<T>> make_estimator(const Spec& spec, const Structure& structure, Key init) {
  if (auto reason = unsupported(spec, structure); !reason.empty()) throw UsageError(spec.name + ": " + reason);
  const auto& entry = Estimators::instance().at(spec.name);
  const Settings settings(entry.name, entry.parameters, spec);
  if constexpr (std::is_same_v<T, float>)
    return entry.make_float(settings, structure, init);
  else
    return entry.make_double(settings, structure, init);
}

template std::unique_ptr<Estimator<float>> make_estimator(const Spec&, const Structure&, Key);
template std::unique_ptr<Estimator<double>> make_estimator(const Spec&, const Structure&, Key);

}  // namespace hardgrad
