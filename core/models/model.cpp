#include "core/models/model.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <type_traits>

namespace hardgrad {

template <class T>
std::vector<double> Model<T>::outcomes(const Batch& batch, int nodes) const {
  if (nodes == 0) nodes = structure().nodes();
  std::vector<double> count(batch.examples(), 1.0);
  for (int b = 0; b < batch.examples(); ++b)
    for (std::size_t site = 0; site < structure().sites.size(); ++site) {
      const auto [options, times, subset_size] = site_extent(batch, site, b);
      const auto& declared = structure().sites[site];
      for (int n : options) {
        const double answers = !declared.kind.options  ? nodes
                               : declared.kind.several ? subsets_of(n, subset_size > 0 ? subset_size : declared.subset_size)
                                                       : n;
        count[b] *= std::pow(answers, static_cast<double>(times));
      }
    }
  return count;
}

std::string misfit(const ModelEntry& model, const Dimensions& dimensions) {
  const auto missing = [&](const ModelEntry& entry) {
    std::vector<std::string> needs;
    std::copy_if(entry.needs.begin(), entry.needs.end(), std::back_inserter(needs),
                 [&](const auto& need) { return !dimensions.contains(need); });
    return needs;
  };
  const auto lacks = missing(model);
  if (lacks.empty()) return {};
  std::vector<std::string> fitting, has;
  for (const auto& [name, size] : dimensions) has.push_back(name);
  for (const auto& [name, entry] : Models::instance().entries())
    if (missing(entry).empty()) fitting.push_back(name);
  return fmt::format("model {} does not fit this task: it needs sizes named {}, the task has {}; models that fit: {}",
                     model.name, fmt::join(lacks, ", "), has.empty() ? "none" : fmt::format("{}", fmt::join(has, ", ")),
                     fitting.empty() ? "none" : fmt::format("{}", fmt::join(fitting, ", ")));
}

template <class T>
std::unique_ptr<Model<T>> make_model(const Spec& spec, const Dimensions& dimensions, Key init, bool posterior) {
  const auto& entry = Models::instance().at(spec.name);
  const Settings settings(entry.name, entry.parameters, spec);
  if (const auto reason = misfit(entry, dimensions); !reason.empty()) throw UsageError(reason);
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
