// mvd: measure-valued derivative: both values of a bit, or both halves of a Normal's pairs, all else equal.
//
//   g_phi = p (1 - p) (f(1, rest) - f(0, rest)),   rest ~ the other choices' distributions       per choice
//
// Mohamed, Rosca, Figurnov & Mnih 2020, Monte Carlo gradient estimation in machine learning, sec. 6; Pflug 1996,
// Optimization of stochastic models. A measure-valued derivative is a constant times the difference of two distributions. For
// Bernoulli(p), in p: the point mass at 1 minus that at 0, and dp/dphi = p (1 - p).
// For a Normal: a Weibull pair for the mean, double-sided Maxwell minus normal for the scale.
// Target: expected loss. Bias: none. Cost for Normals: 1 + 4 rows per column and choice. For bits: 2 rows per question if
// choices have separate costs, else one more row for each column of each question, because the flipped value does not follow p.
// Departures: one of the two values is that of the base path. The flipped row shares the later choices of the base path if its
// flip does not change their distribution (common random numbers, sec. 7); otherwise it draws its own.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/branching.hpp"
#include "core/choice/normal.hpp"
#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/estimator.hpp"
#include "core/estimator/paths.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::mvd {
namespace {

using Config = SamplesConfig<>;

// Measure-valued derivatives of Normals: for any loss, the derivative in a parameter is a constant times a difference of two
// mean losses, each under another distribution.
//
//   d/dmean E[f]      = 1 / (scale sqrt(2 pi)) (E f(mean + scale w) - E f(mean - scale w)),  w Weibull of shape 2, scale
//   sqrt(2) d/dlog_scale E[f] = E f(mean + scale m) - E f(mean + scale e),                           m double-sided Maxwell, e
//   normal
//
// Mohamed, Rosca, Figurnov & Mnih 2020, Monte Carlo gradient estimation in machine learning, sec. 6 and table 1. Both halves of
// a pair share their noise: the same w; and e = m u with u uniform on (0, 1), which makes e a normal number (ibid., coupling).

/// The two halves of each of the two pairs.
enum Half { above, below, wider, as_it_is, halves };

/// A row of the run: a sample's base path, or a branch that left it at one column of a choice.
struct Branch {
  int sample;
  int step = -1, column = 0;
  Half half = above;
  bool base() const { return step < 0; }
};

template <class T>
class MeasureValuedHandler final : public Handler<T> {
 public:
  MeasureValuedHandler(int samples, const Problem<T>& problem)
      : random_(problem.random), id_(problem.batch.id), cap_(problem.cap) {
    for (int n = 0; n < samples * problem.batch.examples(); ++n) branches_.push_back({n});
    samples_ = samples;
  }
  const std::vector<Branch>& branches() const { return branches_; }
  /// [step][sample] the row of the base path that asked.
  const std::vector<std::vector<int>>& asked() const { return asked_; }

  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto& distribution = as_normal(*question.distribution);
    const bool root = question.site.rows->is_root();
    const auto D = static_cast<std::size_t>(question.site.columns);
    require_changes(static_cast<double>(branches_.size() + samples_ * id_.size() * halves * D), question.site.columns, cap_);
    std::vector<Branch> next;
    std::vector<int> parent;
    std::vector<double> e, base(D);
    auto& asked = asked_.emplace_back();
    const auto go_on = [&](int row, const Branch& branch) {
      parent.push_back(row);
      next.push_back(branch);
      e.insert(e.end(), base.begin(), base.end());
    };
    for (std::size_t j = 0; j < branches_.size();) {
      const int sample = branches_[j].sample, row = root ? sample / samples_ : static_cast<int>(j);
      Draw where{.example = id_[sample / samples_],
                 .replica = static_cast<std::uint32_t>(sample % samples_),
                 .step = static_cast<std::uint32_t>(question.step)};
      const auto draw = [&](Standard noise, std::uint32_t index, std::size_t column) {
        where.index = index;
        where.column = static_cast<std::uint32_t>(column);
        return random_.standard(noise, where);
      };
      for (std::size_t d = 0; d < D; ++d) base[d] = draw(Standard::normal, 0, d);
      asked.push_back(row);
      for (; j < branches_.size() && branches_[j].sample == sample; ++j) go_on(root ? row : static_cast<int>(j), branches_[j]);
      for (std::size_t d = 0; d < D; ++d) {
        const double w = draw(Standard::weibull, 1, d), m = draw(Standard::double_maxwell, 2, d);
        const double moved[halves] = {w, -w, m, m * draw(Standard::uniform, 3, d)};
        for (int half = 0; half < halves; ++half) {
          go_on(row, {sample, question.step, static_cast<int>(d), static_cast<Half>(half)});
          e[e.size() - D + d] = moved[half];
        }
      }
    }
    branches_ = std::move(next);
    return distribution.at(tape, Rows::after(question.site.rows, std::move(parent), question.step), e, false);
  }

 private:
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  double cap_;
  int samples_;
  std::vector<Branch> branches_;
  std::vector<std::vector<int>> asked_;
};

/// The mean of `samples` estimates, each with one base path. At every choice, four rows per column leave the base path. In such
/// a row this one column is drawn from a half of the two pairs. Branches continue with the base path's noise (common random
/// numbers). 1 + 4 sum_t D_t rows. Each choice must continue the previous one.
template <class T>
Estimate<T> measure_valued_of_normals(const Problem<T>& problem, int samples) {
  MeasureValuedHandler<T> handler(samples, problem);
  auto episode = problem.run(handler);
  const auto paths = paths_to(*episode, static_cast<int>(episode->steps().size()) - 1);
  const auto f = path_cost_values(*episode, paths, true);
  const double share = 1.0 / (samples * problem.batch.examples());

  // Slopes of the estimate in the means and log scales of the rows that asked; each is a difference of two losses.
  const auto& steps = episode->steps();
  std::vector<std::vector<double>> mean, log_scale;
  for (const auto& step : steps) {
    mean.emplace_back(step.question.site.rows->size() * step.question.site.columns);
    log_scale.push_back(mean.back());
  }
  std::vector<double> path(f.size());
  double loss = 0;
  for (std::size_t n = 0; n < f.size(); ++n) {
    const auto& branch = handler.branches()[n];
    if (branch.base()) {
      path[n] = share;
      loss += share * f[n];
    } else if (branch.half == above || branch.half == wider) {
      const auto& site = steps[branch.step].question;
      const std::size_t choice = handler.asked()[branch.step][branch.sample] * site.site.columns + branch.column;
      const double difference = share * (f[n] - f[n + 1]);  // the next row is the other half
      const double scale = std::exp(static_cast<double>(as_normal(*site.distribution).log_scale().value().data[choice]));
      if (branch.half == above)
        mean[branch.step][choice] += difference / (scale * std::sqrt(2 * std::numbers::pi));
      else
        log_scale[branch.step][choice] += difference;
    }
  }
  auto surrogate = weighted_sum(path_cost(*episode, paths, true), std::span<const double>(path));
  for (std::size_t t = 0; t < steps.size(); ++t) {
    const auto& distribution = as_normal(*steps[t].question.distribution);
    surrogate = add(surrogate, add(weighted_sum(distribution.location(), std::span<const double>(mean[t])),
                                   weighted_sum(distribution.log_scale(), std::span<const double>(log_scale[t]))));
  }
  return {.surrogate = surrogate, .episode = std::move(episode), .loss = loss};
}

template <class T>
class BitMvd final : public CoupledEstimator<T> {
 public:
  explicit BitMvd(int samples) : CoupledEstimator<T>(samples, 2, 0, Credit::reward_to_go) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    coupling.option[0] = random.categorical(coupling.p, where);
    coupling.option[1] = 1 - coupling.option[0];
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    const double sign = coupling.option[0] - coupling.option[1];
    logits[1] = coupling.p[0] * coupling.p[1] * sign * (f[0] - f[1]);
    logits[0] = -logits[1];
  }
  bool all_lawful() const override { return false; }
};

template <class T>
class Mvd final : public Estimator<T> {
 public:
  Mvd(const Config& config, const Structure& structure, Key)
      : config_(config), numbers_(structure.numbers()), bits_(config.samples) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    return numbers_ ? measure_valued_of_normals(problem, config_.samples) : bits_.estimate(problem);
  }
  bool exchangeable() const override { return false; }

 private:
  Config config_;
  bool numbers_;
  BitMvd<T> bits_;
};

std::string one_kind(const Config&, const Structure& structure) {
  const auto& sites = structure.sites;
  const auto numbers = std::count_if(sites.begin(), sites.end(), [](const auto& site) { return !site.kind.options; });
  if (numbers == 0) return "";
  if (numbers < std::ssize(sites)) return "it supports bits or Normals, but the model has both: take rloo";
  if (structure.steps() > 1 && structure.independent())
    return "Normals must be columns of one question or feed each other, but this model asks for independent ones: take rloo";
  return "";
}

}  // namespace

const EstimatorEntry entry = {
    .name = "mvd",
    .summary = "measure-valued derivative: both values of a bit, or Weibull and Maxwell pairs of a Normal",
    .paper = "Mohamed et al. 2020, Monte Carlo gradient estimation in machine learning, sec. 6",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "2 K; K (1 + Q D) if shared; K (1 + 4 T) if numbers",
    .parameters = declared<Config>(),
    .needs = {need::measure_valued},
    .promises = {promise::unshifted()},
    .why_unsupported = one_kind,
};
HARDGRAD_ESTIMATOR(Mvd, entry)

}  // namespace hardgrad::estimators::mvd
