#include "experiments/measurement/exact_moments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>

#include "core/autodiff/gradient.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/kinks.hpp"
#include "experiments/measurement/lengths.hpp"
#include "experiments/measurement/parted.hpp"
#include "experiments/measurement/replay.hpp"
#include "experiments/support/parallel.hpp"

namespace hardgrad::measurement {

namespace {

double trace(const std::vector<double>& variances) { return std::accumulate(variances.begin(), variances.end(), 0.0); }

/// Weighted mean and covariance as they come: West 1979, Updating mean and variance estimates. All terms of a variance are
/// positive, and equal numbers have none.
struct Weighted {
  std::vector<double> mean, variances;  ///< [P]
  std::vector<double> covariance = {};  ///< [P, P] if wanted
  double seen = 0;                      ///< sum of the weights, in the end 1
  std::vector<double> so_far = mean;    ///< mean of those seen: a difference of large numbers, where rare ones came first

  void add(double weight, const std::vector<double>& x) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += weight * x[i];
    const double before = seen;
    seen += weight;
    if (seen <= 0) return;
    const double share = weight / seen, term = share * before;
    const std::size_t size = mean.size();
    for (std::size_t i = 0; i < (covariance.empty() ? 0 : size); ++i)
      for (std::size_t j = 0; j < size; ++j) covariance[i * size + j] += term * (x[i] - so_far[i]) * (x[j] - so_far[j]);
    for (std::size_t i = 0; i < size; ++i) {
      const double step = x[i] - so_far[i];
      variances[i] += term * step * step;
      so_far[i] += share * step;
    }
  }
};

/// What independent estimates are made of: each example, or all that the estimator couples.
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

/// Complete sets of choices of all examples together.
template <class T>
double outcomes_of(const Model<T>& model, const Batch& batch, int nodes) {
  const auto each = model.outcomes(batch, nodes);
  return std::accumulate(each.begin(), each.end(), 1.0, std::multiplies<>());
}

/// Of the last draw, besides its jumps, where those before it have so many.
int inner_pieces(int pieces) { return std::max(8, 2 * pieces); }

/// How an example is visited.
struct Way {
  int nodes, level;
  bool one_copy;
  const Kinks& kinks;
  int pieces = 0;         ///< of standard draws that are parted; 0: they are not
  std::size_t draws = 0;  ///< standard draws of a run
};

/// What its runs drew.
struct Draws {
  std::size_t standard = 0;  ///< in each run
  bool alike = true;         ///< as many in each, and nothing else
  void see(const Replay& replay) {
    const bool first = standard == 0;
    alike = alike && replay.only_standard() && (first || replay.standard_draws() == standard);
    standard = replay.standard_draws();
  }
};

/// An estimate, and its gradient in d.
template <class T>
Estimate<T> drawn(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, bool one_copy, Randomness& random,
                  Tape<T>& tape, std::vector<double>& d) {
  tape.rewind();
  auto estimate = estimator.draw({.tape = tape, .model = model, .batch = example, .random = random, .one_copy = one_copy});
  differentiate(estimate.surrogate, model.parameters(), d);
  return estimate;
}

/// Moments of one example, around `reference`.
template <class T>
Moments visited(const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                const std::vector<double>& reference, const Way& way, double outcome_cap, bool covariance, const Stop& stop,
                Draws* draws = nullptr) {
  const std::size_t size = model.parameters().size();
  Moments m;
  const double reference_norm = length_of(reference);

  Replay replay(estimator.exchangeable(), way.nodes, way.level, &way.kinks);
  Tape<T> tape;
  std::vector<double> d(size);
  // By the quadratures' rule, and by the two coarser ones in it; around the reference.
  std::vector<Weighted> rules(Quadrature::rules, {.mean = d, .variances = d});
  if (covariance) rules[0].covariance.resize(size * size);
  double visits = 0;
  const auto run = [&] {
    poll(stop);
    replay.begin();
    return drawn(estimator, model, example, way.one_copy, replay, tape, d);
  };
  if (way.pieces > 0) replay.part(way.pieces, way.draws);
  do {
    auto estimate = run();
    if (replay.open()) {
      const auto noise = replay.open_noise();
      const auto at = [&](double number) -> std::span<const double> {
        replay.set_open(number);
        run();
        return d;
      };
      replay.close(pieced_rule(noise, inner_pieces(way.pieces), jumps_of(at, noise)));
      estimate = run();
    }
    if (draws) draws->see(replay);
    require_finite(std::span<const double>(d), model.parameters());
    require_finite(estimate.loss, "the loss");
    const double w = replay.weight();
    const double cosine = cosine_between(d, reference);
    for (std::size_t i = 0; i < size; ++i) d[i] -= reference[i];
    m.continuous |= replay.continuous();  // other outcomes may draw no number
    rules[0].add(w, d);
    for (int rule = 1; rule < Quadrature::rules; ++rule)
      if (const double part = replay.weight(rule); part > 0) rules[rule].add(part, d);
    if (!std::isnan(cosine)) m.cosine += w * cosine;
    m.loss += w * estimate.loss;
    m.rows += w * estimate.rows();
    m.attention_values += w * estimate.attention_values();
    m.missed_hints += w * static_cast<double>(tape.missed_hints());
    if (replay.standard_drawn()) m.nodes = way.nodes;
    if (++m.outcomes == 1) visits = replay.expected_visits(outcomes_of(model, example, way.nodes));
    if (std::max(m.outcomes, visits) > outcome_cap)
      throw NotExact(
          fmt::format("exact moments need about {:.6g} {} for {}, more than its share {:.6g} of the cap: "
                      "take fewer samples, steps, options or examples, or raise the cap",
                      std::max(m.outcomes, visits),
                      replay.continuous() ? "outcomes and quadrature nodes (the noise is continuous)" : "outcomes",
                      example.examples() == 1 ? "one example" : "a batch of coupled examples", outcome_cap));
  } while (replay.next());

  auto& fine = rules[0];
  const double rounding = sizeof(T) == 4 ? 1e-4 : 1e-9;  // of log-probabilities in T
  if (!(std::abs(fine.seen - 1) < rounding))
    throw Bug(fmt::format("the probabilities of all that can be drawn sum to {}, not to 1", fine.seen));
  if (m.continuous && way.pieces == 0) {
    const auto &middle = rules[1], &coarse = rules[2];
    double squares = trace(fine.variances);
    for (double x : fine.mean) squares += x * x;
    constexpr double rounding = 64 * std::numeric_limits<double>::epsilon();  // of long sums
    const double scale = std::sqrt(squares) + reference_norm;
    m.mean_error =
        quadrature_error(distance_between(middle.mean, coarse.mean), distance_between(fine.mean, middle.mean), scale) +
        rounding * scale;
    m.trace_error = quadrature_error(std::abs(trace(middle.variances) - trace(coarse.variances)),
                                     std::abs(trace(fine.variances) - trace(middle.variances)), squares) +
                    rounding * squares;
  }
  m.mean = std::move(fine.mean);
  m.variances = std::move(fine.variances);
  m.covariance = std::move(fine.covariance);
  for (std::size_t i = 0; i < size; ++i) m.mean[i] += reference[i];
  return m;
}

constexpr int fewest_nodes = 8, most_nodes = 32;  // of a standard draw

/// The most nodes a standard draw may have if there are to be no more than `outcome_cap` visits.
template <class T>
int affordable_nodes(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, bool one_copy,
                     double outcome_cap) {
  Tape<T> tape;
  int nodes = most_nodes;
  for (; nodes > fewest_nodes; nodes = nodes > 16 ? nodes - 8 : nodes - 4) {
    Replay replay(estimator.exchangeable(), nodes);
    replay.begin();
    tape.rewind();
    estimator.draw({.tape = tape, .model = model, .batch = example, .random = replay, .one_copy = one_copy});
    if (!replay.standard_drawn() || replay.expected_visits(outcomes_of(model, example, nodes)) <= outcome_cap) break;
  }
  return nodes;
}

/// What the finest of rules is off by, from the distances of each to the next, the finest last. Half as long a step brings
/// three quarters or more at a kink, but by chance less: of the last three distances the largest is taken. Infinite where they
/// do not fall: the integral may be, unless they are rounding of numbers of size `scale`.
double refinement_error(const std::vector<double>& distances, double scale) {
  const auto last = distances.end();
  const double before = *std::max_element(last - 3, last - 1), largest = std::max(before, last[-1]);
  if (largest <= 1e-12 * scale) return 2 * largest;
  return last[-1] < before ? largest : std::numeric_limits<double>::infinity();
}

constexpr int finest_pieces = 256;

/// Of an example whose runs draw standard noise alone, so many times: all but the last draw by rules of more and more pieces,
/// the last one parted where the estimate jumps. Nothing if the cap does not allow enough of them to tell how good they are.
template <class Visit>
std::optional<Moments> parted(const Visit& visit, std::size_t draws, double outcome_cap) {
  std::vector<Moments> rungs;
  std::vector<double> means, traces;
  double left = outcome_cap;
  for (int pieces = 1;; pieces *= 2) {
    const double runs =
        std::pow(6.0 * pieces, static_cast<double>(draws) - 1) * (runs_of_jumps + 6 * (inner_pieces(pieces) + 4));
    if (runs > left) break;
    left -= runs;
    rungs.push_back(visit(pieces));
    const auto n = rungs.size();
    if (n > 1) {
      means.push_back(distance_between(rungs[n - 1].mean, rungs[n - 2].mean));
      traces.push_back(std::abs(trace(rungs[n - 1].variances) - trace(rungs[n - 2].variances)));
    }
    if (pieces == finest_pieces) break;
  }
  if (means.size() < 3) return {};
  auto m = std::move(rungs.back());
  m.nodes = 6 << (rungs.size() - 1);
  const double spread = trace(m.variances), size = length_of(m.mean);
  m.mean_error = refinement_error(means, size + std::sqrt(spread)) + m.mean_error;
  m.trace_error = refinement_error(traces, spread + size * size) + m.trace_error;
  return m;
}

constexpr int finest_level = 6;

/// The same with as good a quadrature as can be had, and what it leaves in doubt.
template <class T>
Moments refined(const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                const std::vector<double>& reference, bool one_copy, double outcome_cap, bool covariance, const Stop& stop) {
  const int nodes =
      model.structure().numbers() ? affordable_nodes(estimator, model, example, one_copy, outcome_cap) : most_nodes;
  Kinks kinks;
  Draws draws;
  const auto visit = [&](int nodes, int level, bool covariance) {
    return visited(estimator, model, example, reference, {nodes, level, one_copy, kinks}, outcome_cap, covariance, stop,
                   &draws);
  };
  auto m = visit(nodes, 0, covariance);
  const auto good = [&] {
    const double spread = trace(m.variances);
    return m.mean_error <= 1e-10 * std::hypot(std::sqrt(spread), length_of(m.mean)) && m.trace_error <= 1e-10 * spread;
  };
  if (m.nodes > 0) {
    const auto rough = visit(3 * nodes / 4, 0, false);
    const double mean_step = distance_between(m.mean, rough.mean),
                 trace_step = std::abs(trace(m.variances) - trace(rough.variances));
    m.mean_error += mean_step;
    m.trace_error += trace_step;
    if (good()) return m;
    if (draws.alike) {
      const auto by_pieces = [&](int pieces) {
        return visited(estimator, model, example, reference, {nodes, 0, one_copy, kinks, pieces, draws.standard}, outcome_cap,
                       covariance, stop);
      };
      if (auto better = parted(by_pieces, draws.standard, outcome_cap)) return *better;
    }
    const auto rougher = visit(nodes / 2, 0, false);  // what is not smooth comes near by chance: several steps are asked
    m.mean_error += 2 * std::max(mean_step, distance_between(rough.mean, rougher.mean));
    m.trace_error += 2 * std::max(trace_step, std::abs(trace(rough.variances) - trace(rougher.variances)));
    return m;
  }
  if (!m.continuous || good()) return m;
  Tape<T> tape;
  std::vector<double> d(model.parameters().size());
  const auto estimate = [&](Randomness& random) -> std::span<const double> {
    poll(stop);
    drawn(estimator, model, example, one_copy, random, tape, d);
    return d;
  };
  kinks = find_kinks(estimate, outcome_cap / 4);
  try {
    for (int level = kinks.empty() ? 1 : 0; !good() && level <= finest_level; ++level) m = visit(nodes, level, covariance);
  } catch (const NotExact&) {  // more nodes than the cap: what there is, with its error
  }
  return m;
}

/// The same, if need be by one of the copies it is the mean of.
template <class T>
Moments of_example(const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                   const std::vector<double>& reference, double outcome_cap, bool covariance, const Stop& stop) {
  const double copies = estimator.copies();
  try {
    return refined(estimator, model, example, reference, false, outcome_cap, covariance, stop);
  } catch (const NotExact&) {
    if (copies == 1) throw;
  }
  auto m = refined(estimator, model, example, reference, true, outcome_cap, covariance, stop);
  for (auto& v : m.variances) v /= copies;
  for (auto& v : m.covariance) v /= copies;
  m.trace_error /= copies;
  for (double* cost : {&m.rows, &m.attention_values, &m.missed_hints}) *cost *= copies;
  m.cosine = std::nan("");  // of a mean it is none of the copies'
  return m;
}

}  // namespace

template <class T>
Moments exact_moments(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                      const std::vector<std::vector<double>>& reference, double outcome_cap, bool covariance,
                      const Stop& stop) {
  const auto parts = independent_parts(estimator, batch);
  const int count = static_cast<int>(parts.size());
  std::vector<Moments> each(count);
  parallel_for(count, [&](int i) {
    auto around = reference[parts[i][0]];  // of several, their mean
    for (std::size_t b = 1; b < parts[i].size(); ++b)
      for (std::size_t p = 0; p < around.size(); ++p)
        around[p] += (reference[parts[i][b]][p] - around[p]) / static_cast<double>(b + 1);
    each[i] = of_example(estimator, model, batch.select(parts[i]), around, outcome_cap / count, covariance, stop);
  });
  // The estimate of a batch is the mean of independent ones.
  auto total = std::move(each[0]);
  for (int part = 1; part < count; ++part) {
    const auto& m = each[part];
    for (std::size_t i = 0; i < total.mean.size(); ++i) {
      total.mean[i] += m.mean[i];
      total.variances[i] += m.variances[i];
    }
    for (std::size_t i = 0; i < total.covariance.size(); ++i) total.covariance[i] += m.covariance[i];
    total.outcomes += m.outcomes;
    total.continuous |= m.continuous;
    total.nodes = std::max(total.nodes, m.nodes);
    total.mean_error += m.mean_error;
    total.trace_error += m.trace_error;
    total.loss += m.loss;
    total.rows += m.rows;
    total.attention_values += m.attention_values;
    total.missed_hints += m.missed_hints;
  }
  for (auto& g : total.mean) g /= count;
  for (auto& v : total.variances) v /= double(count) * count;
  for (auto& v : total.covariance) v /= double(count) * count;
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
  Tape<T> tape;
  for (const auto& part : independent_parts(estimator, batch)) {
    const auto example = batch.select(part);
    Replay replay(estimator.exchangeable(), nodes);
    replay.begin();
    tape.clear();
    estimator.draw({.tape = tape, .model = model, .batch = example, .random = replay, .one_copy = estimator.copies() > 1});
    most = std::max(most, replay.expected_visits(outcomes_of(model, example, nodes)));
  }
  return most;
}

template double visits_needed(const Estimator<float>&, const Model<float>&, const Batch&);
template double visits_needed(const Estimator<double>&, const Model<double>&, const Batch&);
template Moments exact_moments(const Estimator<float>&, const Model<float>&, const Batch&,
                               const std::vector<std::vector<double>>&, double, bool, const Stop&);
template Moments exact_moments(const Estimator<double>&, const Model<double>&, const Batch&,
                               const std::vector<std::vector<double>>&, double, bool, const Stop&);

}  // namespace hardgrad::measurement
