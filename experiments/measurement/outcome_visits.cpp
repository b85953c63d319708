#include "experiments/measurement/outcome_visits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/lengths.hpp"
#include "experiments/measurement/quadrature.hpp"
#include "experiments/support/parallel.hpp"

namespace hardgrad::measurement {
namespace {

/// Sums over some of the visits, in their order.
struct Sums {
  Moments m;                    // all but the mean, the variances and their errors
  std::vector<Weighted> rules;  // by the quadratures' rule, and by the two coarser rules it contains; around the reference
  Draws draws;

  void join(const Sums& later) {
    for (std::size_t rule = 0; rule < rules.size(); ++rule) rules[rule].join(later.rules[rule]);
    m.cosine += later.m.cosine;
    m.loss += later.m.loss;
    m.cost.add(later.m.cost);
    m.outcomes += later.m.outcomes;
    m.continuous |= later.m.continuous;
    m.nodes = std::max(m.nodes, later.m.nodes);
    m.ratios.join(later.m.ratios);
    draws.join(later.draws);
  }
};

/// All visits of an example. They are divided by the outcomes of the first draws into parts for the threads. The parts, and the
/// order in which their sums are joined, depend on the tree of outcomes alone.
template <class T>
class Visits {
 public:
  Visits(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, const std::vector<double>& reference,
         const VisitSettings& settings, double outcome_cap, bool covariance, const Stop& stop)
      : estimator_(estimator),
        model_(model),
        example_(example),
        reference_(reference),
        settings_(settings),
        outcome_cap_(outcome_cap),
        covariance_(covariance),
        stop_(stop) {}

  Sums all() {
    NoiseEnumerator enumerator(settings_.exchangeable, settings_.nodes, settings_.level, &settings_.kinks);
    if (settings_.pieces > 0) enumerator.part(settings_.pieces, settings_.draws);
    return part(std::move(enumerator));
  }

 private:
  /// The memory of one run after another.
  struct Runs {
    Runs(std::function<void()> pause, std::size_t size) : tape(std::move(pause)), d(size) {}
    Tape<T> tape;
    std::vector<double> d;
  };

  /// A part that starts at `replay`: its first visit shows where it is divided further.
  Sums part(NoiseEnumerator enumerator) {
    const std::size_t size = reference_.size();
    const std::vector<double> zero(size);
    Sums sums{.m = {}, .rules = std::vector<Weighted>(Quadrature::rules, {.mean = zero, .variances = zero}), .draws = {}};
    if (covariance_) sums.rules[0].covariance.resize(size * size);
    auto runs = take_runs();
    visit(enumerator, *runs, sums);
    const auto others = enumerator.divide(depth_);
    return parallel_joined<Sums>(1 + static_cast<int>(others.size()), [&](int i) {
      if (i > 0) return part(others[i - 1]);
      while (enumerator.next()) visit(enumerator, *runs, sums);
      give_back(std::move(runs));
      return std::move(sums);
    });
  }

  /// Memory for the runs of a part, kept for later parts.
  std::unique_ptr<Runs> take_runs() {
    std::lock_guard guard(mutex_);
    if (free_.empty()) return std::make_unique<Runs>(polling(stop_), reference_.size());
    auto runs = std::move(free_.back());
    free_.pop_back();
    return runs;
  }
  void give_back(std::unique_ptr<Runs> runs) {
    std::lock_guard guard(mutex_);
    free_.push_back(std::move(runs));
  }

  Estimate<T> run(NoiseEnumerator& enumerator, Runs& runs) const {
    poll(stop_);
    enumerator.begin();
    return drawn(estimator_, model_, example_, settings_.part, enumerator, runs.tape, runs.d);
  }

  void visit(NoiseEnumerator& enumerator, Runs& runs, Sums& sums) {
    auto& [m, rules, draws] = sums;
    auto& d = runs.d;
    auto estimate = run(enumerator, runs);
    if (enumerator.open()) {
      const auto noise = enumerator.open_noise();
      const auto at = [&](double number) -> std::span<const double> {
        enumerator.set_open(number);
        run(enumerator, runs);
        return d;
      };
      const auto jumps = jumps_of(at, noise);
      draws.jumps = draws.jumps || !jumps.empty();
      enumerator.close(pieced_rule(noise, inner_pieces(settings_.pieces), jumps));
      estimate = run(enumerator, runs);
    }
    draws.see(enumerator);
    require_finite(std::span<const double>(d), model_.parameters());
    require_finite(estimate.loss, "the loss");
    const double w = enumerator.weight();
    const double cosine = cosine_between(d, reference_);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= reference_[i];
    m.continuous |= enumerator.continuous();  // other outcomes may draw no number
    rules[0].add(w, d);
    for (int rule = 1; rule < Quadrature::rules; ++rule)
      if (const double part = enumerator.weight(rule); part > 0) rules[rule].add(part, d);
    if (!std::isnan(cosine)) m.cosine += w * cosine;
    m.loss += w * estimate.loss;
    m.ratios.add(*estimate.episode, w);
    m.cost.add(cost_of(estimate, runs.tape), w);
    if (enumerator.standard_drawn()) m.nodes = settings_.nodes;
    ++m.outcomes;
    count(enumerator);
  }

  /// Counts a visit; the first one shows the tree of outcomes. NotExact if there are too many.
  void count(const NoiseEnumerator& enumerator) {
    const double seen = static_cast<double>(++seen_);
    if (seen == 1) {
      expected_ = enumerator.expected_visits(outcomes_of(model_, example_, settings_.nodes));
      depth_ = enumerator.depth_of_parts(expected_);
    }
    if (std::max(seen, expected_) <= outcome_cap_) return;
    throw NotExact(
        fmt::format("exact moments need about {:.6g} {} for {}, more than its share {:.6g} of the cap: "
                    "take fewer samples, steps, options or examples, or raise the cap",
                    std::max(std::floor(outcome_cap_) + 1, expected_),
                    enumerator.continuous() ? "outcomes and quadrature nodes (the noise is continuous)" : "outcomes",
                    example_.examples() == 1 ? "one example" : "a batch of coupled examples", outcome_cap_));
  }

  const Estimator<T>& estimator_;
  const Model<T>& model_;
  const Batch& example_;
  const std::vector<double>& reference_;
  const VisitSettings& settings_;
  const double outcome_cap_;
  const bool covariance_;
  const Stop& stop_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Runs>> free_;
  std::atomic<std::size_t> seen_{0};
  double expected_ = 0;    // number of visits; from here on known after the first one
  std::size_t depth_ = 0;  // of the draws whose outcomes divide the visits
};

}  // namespace

template <class T>
Moments visited(const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                const std::vector<double>& reference, const VisitSettings& settings, double outcome_cap, bool covariance,
                const Stop& stop, Draws* draws) {
  auto sums = Visits<T>(estimator, model, example, reference, settings, outcome_cap, covariance, stop).all();
  if (draws) draws->join(sums.draws);
  auto& [m, rules, of_draws] = sums;
  auto& fine = rules[0];
  const double rounding = sizeof(T) == 4 ? 1e-4 : 1e-9;  // of log-probabilities in T
  if (!(std::abs(fine.seen - 1) < rounding))
    throw Bug(fmt::format("the probabilities of all that can be drawn sum to {}, not to 1", fine.seen));
  if (m.continuous && settings.pieces == 0) {
    const auto &middle = rules[1], &coarse = rules[2];
    double squares = trace(fine.variances);
    for (double x : fine.mean) squares += x * x;
    constexpr double rounding = 64 * std::numeric_limits<double>::epsilon();  // of long sums
    const double scale = std::sqrt(squares) + length_of(reference);
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
  add_in_place(m.mean, xt::adapt(reference));
  return std::move(m);
}

template Moments visited(const Estimator<float>&, const Model<float>&, const Batch&, const std::vector<double>&,
                         const VisitSettings&, double, bool, const Stop&, Draws*);
template Moments visited(const Estimator<double>&, const Model<double>&, const Batch&, const std::vector<double>&,
                         const VisitSettings&, double, bool, const Stop&, Draws*);

}  // namespace hardgrad::measurement
