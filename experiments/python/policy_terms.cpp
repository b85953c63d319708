// The terms of policy_gradient, for groups of sequences that Python enumerates: the fields that a judged loss may follow.
#include "core/estimator/score_function/policy_terms.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "experiments/python/module.hpp"

namespace hardgrad::python {
namespace {

namespace py = pybind11;
using Doubles = Numbers<double>;

/// The names of a table's rows in their order, with their words.
template <class Row, std::size_t N>
py::dict named_words(const Row (&rows)[N]) {
  py::dict all;
  for (const auto& row : rows) all[py::str(std::string(row.name))] = row.words;
  return all;
}

std::vector<double> flat_list(const Doubles& x) { return {x.data(), x.data() + x.size()}; }

/// [T][n K] of an array [n, K, T].
policy::PerQuestion by_question(const Doubles& x) {
  const std::size_t T = x.shape(2), rows = x.shape(0) * x.shape(1);
  policy::PerQuestion all(T, std::vector<double>(rows));
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t t = 0; t < T; ++t) all[t][r] = x.data()[r * T + t];
  return all;
}

Doubles policy_advantages(const std::string& name, const Doubles& rewards, const Doubles& lengths, const Doubles& log_p,
                          const Doubles& log_q, double epsilon) {
  auto f = flat_list(rewards);
  for (auto& x : f) x = -x;
  const auto n = flat_list(lengths), p = flat_list(log_p), q = flat_list(log_q);
  if (const auto* row = policy::row_of(policy::advantages, name); row->compare)
    row->compare(f, {static_cast<int>(rewards.shape(1)), 1, n, p, q, epsilon});
  for (auto& x : f) x = -x;
  return array_of<double>(f, {rewards.shape(0), rewards.shape(1)});
}

/// W [n, K, T]. limits: low, high, dual; the shapes by the sign of the advantage, the positive first; the rates.
Doubles policy_weights(const std::string& ratio, const std::string& bound, const std::array<double, 7>& limits,
                       double top_entropy, const Doubles& advantage, const Doubles& log_ratio, const Doubles& log_p,
                       const Doubles& entropy, const Doubles& lengths) {
  const policy::Limits limit{limits[0], limits[1], limits[2], {limits[3], limits[4]}, {limits[5], limits[6]}};
  const auto& bounded = *policy::row_of(policy::bounds, bound);
  const auto n = flat_list(lengths);
  const auto l = by_question(log_ratio), log_w = policy::log_weights(*policy::row_of(policy::ratios, ratio), l, n);
  const std::size_t T = l.size(), K = log_ratio.shape(1);
  const auto *A = advantage.data(), *p = log_p.data(), *h = entropy.data();
  auto w = array_of<double>(A, {advantage.shape(0), advantage.shape(1), advantage.shape(2)});
  for (std::size_t r = 0; r < n.size(); ++r)
    for (std::size_t t = 0; t < T; ++t) {
      const auto i = r * T + t;
      const policy::Word word{std::exp(log_w[t][r]), A[i], l[t][r], p[i], l, r, n[r], std::min(t + 1.0, n[r])};
      w.mutable_data()[i] = bounded.of(word, limit);
    }
  for (std::size_t first = 0; top_entropy < 1 && first < n.size() * T; first += K * T) {  // each group is a batch
    std::vector<double> made;
    for (std::size_t i = first; i < first + K * T; ++i)
      if (static_cast<double>(i % T) < n[i / T]) made.push_back(h[i]);
    const auto counted =
        policy::of_high_entropy(policy::PerQuestion(1, std::vector<double>(h + first, h + first + K * T)), made, top_entropy);
    for (std::size_t i = 0; i < K * T; ++i) w.mutable_data()[first + i] *= counted[0][i];
  }
  return w;
}

Doubles policy_shares(const std::string& aggregation, const Doubles& lengths, double longest) {
  auto of_group = *policy::row_of(policy::aggregations, aggregation);
  of_group.over_batch = false;  // each group is a batch
  return array_of<double>(policy::sample_shares(of_group, flat_list(lengths), lengths.shape(1), longest),
                          {lengths.shape(0), lengths.shape(1)});
}

/// The derivative of a divergence with respect to log p, at m = log p - log r; weighted: of exp(l) times it.
Doubles policy_divergence(const std::string& name, bool weighted, const Doubles& m, const Doubles& log_ratio) {
  const auto& row = *policy::row_of(policy::divergences, name);
  auto slopes = array_of<double>(m.data(), {m.shape(0), m.shape(1)});
  for (py::ssize_t i = 0; i < m.size(); ++i)
    slopes.mutable_data()[i] =
        weighted ? std::exp(log_ratio.data()[i]) * row.weighted_slope(m.data()[i]) : row.slope(m.data()[i]);
  return slopes;
}

}  // namespace

void declare_policy_terms(py::module_& module) {
  module.def("policy_terms", [] {
    py::list of_words;
    for (const auto& row : policy::divergences)
      if (row.of_words()) of_words.append(std::string(row.name));
    return py::dict(py::arg("advantage") = named_words(policy::advantages), py::arg("ratio") = named_words(policy::ratios),
                    py::arg("bound") = named_words(policy::bounds), py::arg("aggregation") = named_words(policy::aggregations),
                    py::arg("divergence") = of_words);
  });
  module.def("policy_advantages", &policy_advantages);
  module.def("policy_weights", &policy_weights);
  module.def("policy_shares", &policy_shares);
  module.def("policy_divergence", &policy_divergence);
}

}  // namespace hardgrad::python
