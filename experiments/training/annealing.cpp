#include "experiments/training/annealing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/support/error.hpp"

namespace hardgrad::training {

Spec annealed(const Spec& estimator, const std::string& text, double share) {
  if (text.empty()) return estimator;
  const auto& entry = Estimators::instance().at(estimator.name);
  const Settings from(entry.name, entry.parameters, estimator);
  auto spec = estimator;
  for (const auto& [name, value] : Spec::parse("train.anneal[" + text + "]").arguments) {
    std::vector<std::string> real;
    for (const auto& parameter : entry.parameters)
      if (parameter.type == ParameterInfo::Type::real) real.push_back(parameter.name);
    if (std::find(real.begin(), real.end(), name) == real.end())
      throw UsageError(fmt::format("train.anneal: {} has no setting {} that is a real number{}", entry.name, name,
                                   did_you_mean(name, real)));
    const Settings to(entry.name, entry.parameters, estimator.with(name, value));
    const double begin = from.real(name), end = to.real(name);
    spec = spec.with(name, fmt::format("{}", (1 - share) * begin + share * end));
  }
  return spec;
}

}  // namespace hardgrad::training
