// The parts of the Python module, and the values that Python passes: arrays and structures.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "core/choice/structure.hpp"

namespace hardgrad::python {

template <class T>
using Numbers = pybind11::array_t<T, pybind11::array::c_style | pybind11::array::forcecast>;

/// A new array with the given shape.
template <class To, class From>
pybind11::array_t<To> array_of(const From* numbers, std::vector<pybind11::ssize_t> shape) {
  pybind11::array_t<To> array(std::move(shape));
  std::copy_n(numbers, array.size(), array.mutable_data());
  return array;
}
template <class To, class From>
pybind11::array_t<To> array_of(const std::vector<From>& numbers, std::vector<pybind11::ssize_t> shape) {
  return array_of<To>(numbers.data(), std::move(shape));
}

/// name, options, columns, times, width of the state, the number of its reach (choice/structure.hpp), and the options of a
/// subset (0: choices are one option each)
using SiteTuple = std::tuple<std::string, int, int, int, int, int, int>;

/// The laws that come with every choice beside the policy: whether there is a posterior, a behaviour policy, a reference policy
using Laws = std::tuple<bool, bool, bool>;

inline Structure structure_of(const std::vector<SiteTuple>& sites, const Laws& laws) {
  Structure structure;
  std::tie(structure.posterior, structure.behaviour, structure.reference) = laws;
  structure.rewards = true;  // where they are needed, the losses are checked
  for (const auto& [name, options, columns, times, width, scope, subset_size] : sites)
    structure.sites.push_back({.name = name,
                               .options = options,
                               .subset_size = std::max(1, subset_size),
                               .times = times,
                               .state_width = width,
                               .scope = static_cast<DependenceScope>(scope),
                               .kind = subset_size > 0 ? SiteKind::subsets : SiteKind::categorical,
                               .columns = columns});
  return structure;
}

/// The options of a site's subsets, or 0.
inline int subset_size_of(const SiteDeclaration& site) { return site.kind.several ? site.subset_size : 0; }

inline std::vector<SiteTuple> sites_of(const Structure& structure) {
  std::vector<SiteTuple> sites;
  for (const auto& site : structure.sites)
    sites.emplace_back(site.name, site.options, site.columns, site.times, site.state_width, static_cast<int>(site.scope),
                       subset_size_of(site));
  return sites;
}

/// Networks that run in Python and make choices, which may feed later ones.
void declare_episode(pybind11::module_& module);
/// hardgrad.Estimator: an estimator that keeps its learned state, and this state as arrays.
void declare_estimator(pybind11::module_& module);
/// The formula of a registered estimator, and draws from logits, for estimates that Python computes.
void declare_formula(pybind11::module_& module);
void declare_noise(pybind11::module_& module);
/// The terms of policy_gradient on groups of sequences.
void declare_policy_terms(pybind11::module_& module);
/// Statistics of gradients that are drawn in Python.
void declare_replicates(pybind11::module_& module);
/// hardgrad.test: the verification of `hardgrad test`, for registered estimators and those written in Python.
void declare_test(pybind11::module_& module);

}  // namespace hardgrad::python
