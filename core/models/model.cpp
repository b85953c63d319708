#include "core/models/model.hpp"

#include <type_traits>

namespace hardgrad {

std::string to_string(Dependence dependence) {
  switch (dependence) {
    case Dependence::deterministic: return "deterministic";
    case Dependence::one_choice: return "one choice";
    case Dependence::factorised: return "factorised";
    case Dependence::sequential: return "sequential";
  }
  throw Bug("unknown dependence");
}

template <class T>
std::unique_ptr<Model<T>> make_model(const Spec& spec, const Dimensions& dimensions, Key init, bool posterior) {
  const auto& entry = Models::instance().at(spec.name);
  const Settings settings(entry.name, entry.parameters, spec);
  for (const auto& need : entry.needs)
    if (!dimensions.contains(need))
      throw UsageError("model " + entry.name + " does not fit this task: the task has no " + need);
  auto known = dimensions;
  known["posterior"] = posterior;
  if constexpr (std::is_same_v<T, float>)
    return entry.make_float(settings, known, init);
  else
    return entry.make_double(settings, known, init);
}

template std::unique_ptr<Model<float>> make_model(const Spec&, const Dimensions&, Key, bool);
template std::unique_ptr<Model<double>> make_model(const Spec&, const Dimensions&, Key, bool);

}  // namespace hardgrad
