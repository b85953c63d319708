#include "experiments/measurement/exact_moments.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "experiments/measurement/lengths.hpp"
#include "experiments/measurement/outcome_visits.hpp"
#include "experiments/measurement/quadrature.hpp"
#include "experiments/support/parallel.hpp"

namespace hardgrad::measurement {
namespace {

/// The parts of a batch with independent estimates: single examples, or the whole batch if the estimator couples its examples.
template <class T>
std::vector<std::vector<int>> independent_parts(const Estimator<T>& estimator, const Batch& batch) {
  std::vector<int> all(batch.examples());
  std::iota(all.begin(), all.end(), 0);
  if (estimator.couples_examples()) return {all};
  std::vector<std::vector<int>> parts;
  parts.reserve(all.size());
  for (int b : all) parts.push_back({b});
  return parts;
}

constexpr int fewest_nodes = 8, most_nodes = 32;  // for a standard draw

/// The smallest part of an estimate from which its moments follow.
template <class T>
SubEstimate fewest(const Estimator<T>& estimator) {
  return {.one = estimator.copies() > 1, .inner = estimator.inner_copies() > 2 ? 2 : 0};
}

/// Approximate number of visits an example needs, from a first one. 0 if `standard_only` and no standard noise was drawn.
template <class T>
double visits_of(int nodes, bool exchangeable, const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                 SubEstimate part, bool standard_only) {
  Tape<T> tape;
  NoiseEnumerator enumerator(exchangeable, nodes);
  enumerator.begin();
  estimator.draw(
      {.tape = tape, .model = model, .batch = example, .random = enumerator, .one_copy = part.one, .inner_copies = part.inner});
  return standard_only && !enumerator.standard_drawn() ? 0 : enumerator.expected_visits(outcomes_of(model, example, nodes));
}

/// Error of the finest rule, from the distances of each rule to the next (the finest last). If an estimate is not smooth, a
/// finer rule may come near by chance, so the largest of the last distances is returned. Infinite if the distances do not fall:
/// then the integral may be infinite, too. Distances at the rounding of numbers of size `scale` are exempt.
double refinement_error(const std::vector<double>& distances, double scale) {
  const auto last = distances.end() - 1;
  const double before = *std::max_element(last - std::min<std::ptrdiff_t>(3, last - distances.begin()), last);
  const double largest = std::max(std::max(last[-1], last[-2]), *last);
  if (before <= 1e-12 * scale) return largest;
  return *last < before ? largest : std::numeric_limits<double>::infinity();
}

constexpr int finest_pieces = 256;

/// Moments of an example whose runs draw only standard noise, `draws` times each. All draws but the last use rules of more and
/// more pieces; the last draw is split where the estimate jumps. Empty if the cap does not allow enough rules to estimate their
/// error.
template <class Visit>
std::optional<Moments> parted(const Visit& visit, std::size_t draws, double outcome_cap) {
  std::optional<Moments> last;
  std::vector<double> means, traces;
  double left = outcome_cap;
  for (int pieces = 2, next = 3; pieces <= finest_pieces; pieces = std::exchange(next, 2 * pieces)) {
    const double runs =
        std::pow(6.0 * pieces, static_cast<double>(draws) - 1) * (runs_of_jumps + 6 * (inner_pieces(pieces) + 4));
    if (runs > left) break;
    left -= runs;
    auto m = visit(pieces);
    m.nodes = 6 * pieces;
    if (last) {
      means.push_back(distance_between(m.mean, last->mean));
      traces.push_back(std::abs(trace(m.variances) - trace(last->variances)));
    }
    last = std::move(m);
  }
  if (means.size() < 3) return {};
  const double spread = trace(last->variances), size = length_of(last->mean);
  last->mean_error = refinement_error(means, size + std::sqrt(spread)) + 1e-14 * (size + std::sqrt(spread));
  last->trace_error = refinement_error(traces, spread + size * size) + 1e-14 * (spread + size * size);
  return last;
}

constexpr int finest_level = 6;

/// The same with the best quadrature the cap allows, and an estimate of its error.
template <class T>
Moments refined(const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                const std::vector<double>& reference, bool exchangeable, SubEstimate part, double outcome_cap, bool covariance,
                const Stop& stop) {
  const auto affordable = [&](int nodes) {
    return visits_of(nodes, exchangeable, estimator, model, example, part, true) <= outcome_cap;
  };
  int nodes = most_nodes;
  if (model.structure().numbers())
    while (nodes > fewest_nodes && !affordable(nodes)) nodes -= nodes > 16 ? 8 : 4;
  Kinks kinks;
  Draws draws;
  const auto visit = [&](int nodes, int level, bool covariance) {
    return visited(estimator, model, example, reference, {nodes, level, part, exchangeable, kinks}, outcome_cap, covariance,
                   stop, &draws);
  };
  auto m = visit(nodes, 0, covariance);
  const auto good = [&](double to = 1e-10) {
    const double spread = trace(m.variances);
    return m.mean_error <= to * std::hypot(std::sqrt(spread), length_of(m.mean)) && m.trace_error <= to * spread;
  };
  if (m.nodes > 0) {
    auto rough = visit(3 * nodes / 4, 0, false);
    const auto add_errors = [&](auto error) {
      m.mean_error += error([](const Moments& a, const Moments& b) { return distance_between(a.mean, b.mean); });
      m.trace_error +=
          error([](const Moments& a, const Moments& b) { return std::abs(trace(a.variances) - trace(b.variances)); });
    };
    add_errors([&](auto distance) { return distance(m, rough); });
    if (good()) return m;
    const bool more = affordable(2 * nodes);
    const auto rougher = more ? m : visit(nodes / 2, 0, false);
    if (more) {
      m = visit(2 * nodes, 0, covariance);
      rough = visit(3 * nodes / 2, 0, false);
    }
    add_errors([&](auto distance) { return gauss_error(distance(rough, rougher), distance(m, rough)); });
    if (good(1e-6)) return m;  // analytic: a finer rule is not needed
    if (draws.alike) {
      const auto by_pieces = [&](int pieces) {
        return visited(estimator, model, example, reference, {nodes, 0, part, exchangeable, kinks, pieces, draws.standard},
                       outcome_cap, covariance, stop, &draws);
      };
      const auto by_parts = parted(by_pieces, draws.standard, outcome_cap);
      if (by_parts && (draws.jumps || by_parts->mean_error + by_parts->trace_error < m.mean_error + m.trace_error))
        return *by_parts;
    }
    return m;
  }
  if (!m.continuous || good()) return m;
  Tape<T> tape(polling(stop));
  std::vector<double> d(model.parameters().size());
  const auto estimate = [&](Randomness& random) -> std::span<const double> {
    poll(stop);
    drawn(estimator, model, example, part, random, tape, d);
    return d;
  };
  kinks = find_kinks(estimate, outcome_cap / 4);
  try {
    for (int level = kinks.empty() ? 1 : 0; !good() && level <= finest_level; ++level) m = visit(nodes, level, covariance);
  } catch (const NotExact&) {  // more nodes than the cap: keep the last result, with its error
  }
  return m;
}

/// The moments with `inner` inner copies, from those with one and with two: Var(1/M sum_m h_m) = V + W / M, V of the mean given
/// the other draws and W the mean variance given them, so V = 2 Var(2) - Var(1) and W = 2 (Var(1) - Var(2)).
Moments of_inner_copies(Moments one, const Moments& two, double inner) {
  const double of_one = 2 / inner - 1, of_two = 2 - 2 / inner;
  for (std::size_t i = 0; i < one.variances.size(); ++i)
    one.variances[i] = std::max(0.0, of_one * one.variances[i] + of_two * two.variances[i]);
  for (std::size_t i = 0; i < one.covariance.size(); ++i)
    one.covariance[i] = of_one * one.covariance[i] + of_two * two.covariance[i];
  one.trace_error = std::abs(of_one) * one.trace_error + of_two * two.trace_error;
  one.outcomes += two.outcomes;
  one.nodes = std::min(one.nodes, two.nodes);
  one.cosine = std::nan("");  // not a function of the two
  return one;
}

/// Moments of the whole estimate; if the cap does not allow it, from one of its copies and from one and two of its inner copies.
template <class T>
Moments of_example(const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                   const std::vector<double>& reference, bool exchangeable, double outcome_cap, bool covariance,
                   const Stop& stop) {
  const double copies = estimator.copies();
  const int inner = estimator.inner_copies();
  const auto of = [&](SubEstimate part) {
    return refined(estimator, model, example, reference, exchangeable, part, outcome_cap, covariance, stop);
  };
  try {
    return of({});
  } catch (const NotExact&) {
    if (copies == 1 && inner <= 2) throw;
  }
  auto m =
      inner <= 2 ? of({.one = true}) : of_inner_copies(of({.one = true, .inner = 1}), of({.one = true, .inner = 2}), inner);
  xt::adapt(m.variances) /= copies;
  xt::adapt(m.covariance) /= copies;
  m.trace_error /= copies;
  m.cost.add(m.cost, copies - 1);
  m.cosine = std::nan("");  // of the mean, it is not that of the copies
  return m;
}

}  // namespace

template <class T>
Moments exact_moments(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                      const std::vector<std::vector<double>>& reference, double outcome_cap, bool covariance,
                      const Stop& stop) {
  const auto parts = independent_parts(estimator, batch);
  const int count = static_cast<int>(parts.size());
  // The check takes some draws. It is skipped if even multisets are too many.
  const bool exchangeable =
      estimator.exchangeable() && (visits_needed(estimator, model, batch) > outcome_cap ||
                                   samples_may_be_permuted(estimator, model, batch.select(parts[0]), fewest(estimator)));
  std::vector<Moments> each(count);
  parallel_for(count, [&](int i) {
    auto around = reference[parts[i][0]];  // the mean over coupled examples
    for (std::size_t b = 1; b < parts[i].size(); ++b)
      add_in_place(around, (xt::adapt(reference[parts[i][b]]) - xt::adapt(around)) / static_cast<double>(b + 1));
    each[i] = of_example(estimator, model, batch.select(parts[i]), around, exchangeable, outcome_cap / count, covariance, stop);
  });
  // The estimate of a batch is the mean of independent estimates.
  auto total = std::move(each[0]);
  for (int part = 1; part < count; ++part) {
    const auto& m = each[part];
    add_in_place(total.mean, xt::adapt(m.mean));
    add_in_place(total.variances, xt::adapt(m.variances));
    add_in_place(total.covariance, xt::adapt(m.covariance));
    total.outcomes += m.outcomes;
    total.continuous |= m.continuous;
    total.nodes = std::max(total.nodes, m.nodes);
    total.mean_error += m.mean_error;
    total.trace_error += m.trace_error;
    total.loss += m.loss;
    total.cost.add(m.cost);
    total.ratios.join(m.ratios);
  }
  xt::adapt(total.mean) /= count;
  xt::adapt(total.variances) /= double(count) * count;
  xt::adapt(total.covariance) /= double(count) * count;
  total.loss /= count;
  total.mean_error /= count;
  total.trace_error /= double(count) * count;
  total.trace = trace(total.variances);
  if (batch.examples() > 1) total.cosine = std::nan("");
  return total;
}

template <class T>
double visits_needed(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch) {
  const int nodes = model.structure().numbers() ? fewest_nodes : most_nodes;
  double most = 0;
  for (const auto& part : independent_parts(estimator, batch))
    most = std::max(most,
                    visits_of(nodes, estimator.exchangeable(), estimator, model, batch.select(part), fewest(estimator), false));
  return most;
}

template double visits_needed(const Estimator<float>&, const Model<float>&, const Batch&);
template double visits_needed(const Estimator<double>&, const Model<double>&, const Batch&);
template Moments exact_moments(const Estimator<float>&, const Model<float>&, const Batch&,
                               const std::vector<std::vector<double>>&, double, bool, const Stop&);
template Moments exact_moments(const Estimator<double>&, const Model<double>&, const Batch&,
                               const std::vector<std::vector<double>>&, double, bool, const Stop&);

}  // namespace hardgrad::measurement
