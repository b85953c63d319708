// mvd: measure-valued derivative: both values of a bit, or both halves of a Normal's pairs, all else equal.
//
//   g_phi = p (1 - p) (f(1, rest) - f(0, rest)),   rest ~ the other choices' distributions       per choice
//
// Mohamed, Rosca, Figurnov & Mnih 2020, Monte Carlo gradient estimation in machine learning, sec. 6; Pflug 1996,
// Optimization of stochastic models. A measure-valued derivative is a constant times the difference of two distributions. For
// Bernoulli(p), in p: the point mass at 1 minus that at 0, and dp/dphi = p (1 - p).
// For a Normal: a Weibull pair for the mean, double-sided Maxwell minus normal for the scale (coupling/measure_valued.hpp).
// Target: expected loss. Bias: none. Cost for Normals: 1 + 4 rows per column and choice. For bits: 2 rows per question if
// choices have separate costs, else one more row for each column of each question, because the flipped value does not follow p.
// Departures: one of the two values is that of the base path. The flipped row shares the later choices of the base path if its
// flip does not change their distribution (common random numbers, sec. 7); otherwise it draws its own.
#include <algorithm>

#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/coupling/measure_valued.hpp"

namespace hardgrad::estimators::mvd {
namespace {

using Config = SamplesConfig<>;

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
