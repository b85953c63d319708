#include "core/estimator/without_replacement/leave_one_out_ratios.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace hardgrad {

LeaveOneOutRatios leave_one_out_ratios(std::span<const double> p, double rest) {
  const std::size_t k = p.size();
  if (rest == 0) {  // the set contains all outcomes: every ratio is 1
    LeaveOneOutRatios all{{p.begin(), p.end()}, {}};
    for (std::size_t s = 0; s < k; ++s) all.second.insert(all.second.end(), p.begin(), p.end());
    return all;
  }
  return k <= 12 ? ratios_by_subsets(p, rest) : ratios_by_integration(p, rest);
}

// Let V(A) = p^{D\(S\A)}(A) / prod_{s in A} p(s). The first outcome of A is s with probability p(s) / (rest + p(A)), so
//   V({}) = 1,  V(A) = sum_{s in A} V(A\s) / (rest + p(A)),  p(s) R(S, s) = V(S\s) / V(S)
// where all terms are positive. V may be as large as p^-k, which fits a long double.
LeaveOneOutRatios ratios_by_subsets(std::span<const double> p, double rest) {
  const std::size_t k = p.size(), all = (std::size_t{1} << k) - 1;
  std::vector<long double> v(all + 1);
  v[0] = 1;
  for (std::size_t set = 1; set <= all; ++set) {
    long double sum = 0, mass = rest;
    for (std::size_t s = 0; s < k; ++s)
      if (set >> s & 1) {
        sum += v[set ^ (std::size_t{1} << s)];
        mass += static_cast<long double>(p[s]);
      }
    v[set] = sum / std::max<long double>(mass, std::numeric_limits<double>::min());
  }
  LeaveOneOutRatios r{std::vector<double>(k), std::vector<double>(k * k)};
  for (std::size_t s = 0; s < k; ++s) {
    const std::size_t without = all ^ (std::size_t{1} << s);
    r.first[s] = static_cast<double>(v[without] / v[all]);
    for (std::size_t o = 0; o < k; ++o)
      r.second[s * k + o] = o == s ? p[s] : static_cast<double>(v[without ^ (std::size_t{1} << o)] / v[without]);
  }
  return r;
}

double inclusion_weight(double p, double kappa) {
  if (p <= 0) return 0;  // drawn only because no other outcome was left: it adds nothing
  const double x = p * std::exp(-kappa);
  if (x > 700) return p;
  return x == 0 ? std::exp(kappa) : p / -std::expm1(-x);
}

namespace {

// log of the probability that an outcome lies above the threshold, q = 1 - exp(-p exp(-kappa)).
double log_inclusion(double p, double kappa) {
  const double log_x = std::log(std::max(p, std::numeric_limits<double>::min())) - kappa;
  if (log_x < -37) return log_x;
  return log_x > 7 ? 0 : std::log(-std::expm1(-std::exp(log_x)));
}

}  // namespace

// The trapezoidal rule in x = -kappa = log E. The integrand is analytic in a strip around the real line, so the error falls
// exponentially with 1 / step. The width of its peak falls like 1 / sqrt(k).
ThresholdNodes threshold_nodes(std::span<const double> p, double rest) {
  const double step = 0.5 / std::sqrt(static_cast<double>(p.size()) + 2);
  // log of the integrand, and log of the integrand divided by the two smallest inclusion probabilities, which has the slowest
  // tail in use. Divided by the squares of both it has an even slower tail, and is integrable only with four outcomes or more.
  const double powers = p.size() < 4 ? 1 : 2;
  const auto logs = [&](double x) {
    double log_density = x + std::log(rest) - rest * std::exp(x), least = 0, second = 0;
    for (double probability : p) {
      const double log_q = log_inclusion(probability, -x);
      log_density += log_q;
      if (log_q < least)
        second = std::exchange(least, log_q);
      else
        second = std::min(second, log_q);
    }
    return std::pair{log_density, log_density - powers * (least + second)};
  };
  std::vector<double> x, log_density;
  double most = -std::numeric_limits<double>::infinity(), most_divided = most;
  const auto visit = [&](double at) {
    const auto [density, divided] = logs(at);
    x.push_back(at);
    log_density.push_back(density);
    most = std::max(most, density);
    most_divided = std::max(most_divided, divided);
    return density > most - 45 || divided > most_divided - 38;
  };
  const double middle = -std::log(rest);  // above it the integrand falls like exp(-rest E), below it like a power of E
  for (int i = 0; visit(middle + i * step) || i * step < 1;) ++i;
  for (int i = 1; visit(middle - i * step) && i * step < 4000; ++i) {
  }
  ThresholdNodes nodes;
  double total = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    nodes.kappa.push_back(-x[j]);
    nodes.weight.push_back(std::exp(log_density[j] - most));
    total += nodes.weight.back();
  }
  for (double& w : nodes.weight) w /= total;
  return nodes;
}

// p^{D\C}(S\C) is the integral of the density without the factors of C: with q = 1 - exp(-p E), R(S, s) = E[1 / q(s) | S].
LeaveOneOutRatios ratios_by_integration(std::span<const double> p, double rest) {
  const std::size_t k = p.size();
  const auto nodes = threshold_nodes(p, rest);
  LeaveOneOutRatios r{std::vector<double>(k), std::vector<double>(k * k)};
  std::vector<double> w(k);
  for (std::size_t j = 0; j < nodes.kappa.size(); ++j) {
    for (std::size_t s = 0; s < k; ++s) w[s] = inclusion_weight(p[s], nodes.kappa[j]);
    for (std::size_t s = 0; s < k; ++s) {
      const double weight = nodes.weight[j] * w[s];
      r.first[s] += weight;
      for (std::size_t o = 0; o < k; ++o) r.second[s * k + o] += weight * w[o];
    }
  }
  for (std::size_t s = 0; s < k; ++s)
    for (std::size_t o = 0; o < k; ++o)
      r.second[s * k + o] = o == s ? p[s] : r.first[s] > 0 ? r.second[s * k + o] / r.first[s] : 0;
  return r;
}

}  // namespace hardgrad
