#include "core/models/model.hpp"

#include <cmath>
#include <type_traits>

namespace hardgrad {

template <class T>
std::vector<double> Model<T>::outcomes(const Batch& batch, int nodes) const {
  if (nodes == 0) nodes = structure().nodes();
  std::vector<double> count(batch.examples(), 1.0);
  for (int b = 0; b < batch.examples(); ++b)
    for (std::size_t site = 0; site < structure().sites.size(); ++site) {
      const auto [options, times] = asked(batch, site, b);
      const bool numbers = !structure().sites[site].kind.options;
      for (int n : options) count[b] *= std::pow(numbers ? nodes : n, static_cast<double>(times));
    }
  return count;
}

template <class T>
std::unique_ptr<Model<T>> make_model(const Spec& spec, const Dimensions& dimensions, Key init, bool posterior) {
  const auto& entry = Models::instance().at(spec.name);
  const Settings settings(entry.name, entry.parameters, spec);
  for (const auto& need : entry.needs)
    if (!dimensions.contains(need))
      throw UsageError("model " + entry.name + " does not fit this task: the task has no " + need);
  const Blueprint blueprint{settings, dimensions, init, posterior};
  if constexpr (std::is_same_v<T, float>)
    return entry.make_float(blueprint);
  else
    return entry.make_double(blueprint);
}

template class Model<float>;
template class Model<double>;
template std::unique_ptr<Model<float>> make_model(const Spec&, const Dimensions&, Key, bool);
template std::unique_ptr<Model<double>> make_model(const Spec&, const Dimensions&, Key, bool);

}  // namespace hardgrad
