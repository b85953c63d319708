#include "experiments/measurement/visits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/lengths.hpp"
#include "experiments/measurement/parted.hpp"

namespace hardgrad::measurement {
namespace {

/// Running weighted mean and covariance: West 1979, Updating mean and variance estimates. All terms of a variance are positive,
/// and equal numbers give exactly 0.
struct Weighted {
  std::vector<double> mean, variances;  ///< [P]
  std::vector<double> covariance = {};  ///< [P, P] if requested
  double seen = 0;                      ///< sum of the weights, 1 at the end
  std::vector<double> so_far = mean;    ///< running mean; inexact if rare numbers came first, a difference of large numbers

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

}  // namespace

template <class T>
Moments visited(const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                const std::vector<double>& reference, const Way& way, double outcome_cap, bool covariance, const Stop& stop,
                Draws* draws) {
  const std::size_t size = model.parameters().size();
  Moments m;
  const double reference_norm = length_of(reference);

  Replay replay(way.exchangeable, way.nodes, way.level, &way.kinks);
  Tape<T> tape(polling(stop));
  std::vector<double> d(size);
  // By the quadratures' rule, and by the two coarser rules it contains; around the reference.
  std::vector<Weighted> rules(Quadrature::rules, {.mean = d, .variances = d});
  if (covariance) rules[0].covariance.resize(size * size);
  double visits = 0;
  const auto run = [&] {
    poll(stop);
    replay.begin();
    return drawn(estimator, model, example, way.copies, replay, tape, d);
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
      const auto jumps = jumps_of(at, noise);
      if (draws) draws->jumps = draws->jumps || !jumps.empty();
      replay.close(pieced_rule(noise, inner_pieces(way.pieces), jumps));
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

template Moments visited(const Estimator<float>&, const Model<float>&, const Batch&, const std::vector<double>&, const Way&,
                         double, bool, const Stop&, Draws*);
template Moments visited(const Estimator<double>&, const Model<double>&, const Batch&, const std::vector<double>&, const Way&,
                         double, bool, const Stop&, Draws*);

}  // namespace hardgrad::measurement
