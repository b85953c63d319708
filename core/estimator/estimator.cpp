#include "core/estimator/estimator.hpp"

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
  }
  throw Bug("unknown target");
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
