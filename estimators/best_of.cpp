// best_of: the score function of the loss of the best of k samples, from all sets of k of K samples.
//
//   J = mean over the sets I of k samples of min_I f                    an unbiased estimate of E[min of k losses]
//   m_i = mean of min_I f over the sets with sample i,  b_i = the same over the sets without it (of k - 1 samples if k = K)
//   g = k/K sum_i (m_i - b_i) grad log p(z_i) + sum_i w_i grad f_i,     w_i the share of the sets whose best sample is i
//
// Walder & Karkhanis 2025, Pass@K policy optimization (rewards transformed by all subsets, with a leave-one-out baseline). Here in
// losses f = - reward. k = 1 is leave-one-out; for k = K the baseline is theirs of sets of k - 1. b_i does not depend on z_i.
// Target: best_of[samples=k]. Bias: none. Cost: K rows.
// Departure: the path term, which rewards do not have.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::best_of {
namespace {

struct Config {
  int samples = 4, best = 2;

  void declare(Fields& field) {
    samples_field(field, samples, 2);
    field(best, "best", 1, 1e6, "k, at most the samples");
  }
};

double binomial(int n, int k) {
  if (k < 0 || k > n) return 0;
  double product = 1;
  for (int i = 1; i <= k; ++i) product *= static_cast<double>(n - k + i) / i;
  return product;
}

template <class T>
class BestOf final : public Estimator<T> {
 public:
  BestOf(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, config_.samples, Costs::weighted);
    const auto f = sampled.losses();
    const double examples = problem.batch.examples();
    std::vector<double> signal(f.size()), share(f.size());
    double loss = 0;
    for (std::size_t first = 0; first < f.size(); first += config_.samples) {
      const auto group = of_sets(std::span<const double>(f).subspan(first, config_.samples));
      loss += group.value / examples;
      for (int i = 0; i < config_.samples; ++i) {
        signal[first + i] = config_.best * group.with_less_without[i];
        share[first + i] = group.wins[i] / examples;
      }
    }
    auto surrogate = add(sampled.score(std::vector(sampled.steps(), signal)), sampled.path(share));
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = loss};
  }

 private:
  struct OfSets {
    double value = 0;                             // J
    std::vector<double> with_less_without, wins;  // [K] m - b, w
  };
  /// Sets are counted by the rank of their best sample: k - 1 of the samples `behind` it complete the set.
  OfSets of_sets(std::span<const double> f) const {
    const int K = config_.samples, k = config_.best, others = std::min(k, K - 1);
    std::vector<int> order(K);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return f[i] < f[j]; });
    const double least = f[order[0]];  // subtracted: equal losses give exactly 0
    OfSets result{least, std::vector<double>(K), std::vector<double>(K)};
    const double all = binomial(K, k), with = binomial(K - 1, k - 1), without = binomial(K - 1, others);
    for (int rank = 0; rank < K; ++rank) {
      const int i = order[rank];
      result.wins[i] = binomial(K - 1 - rank, k - 1) / all;
      result.value += result.wins[i] * (f[i] - least);
      double m = binomial(K - 1 - rank, k - 1) / with * (f[i] - least), b = 0;
      for (int other = 0; other < K; ++other) {
        if (other == rank) continue;
        const int behind = K - 1 - other - (other < rank);  // without i
        const double value = f[order[other]] - least;
        if (other < rank) m += binomial(behind, k - 2) / with * value;
        b += binomial(behind, others - 1) / without * value;
      }
      result.with_less_without[i] = m - b;
    }
    return result;
  }
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "best_of",
    .summary = "score function of the loss of the best of several samples (pass@k), from all subsets of the samples",
    .paper = "Walder & Karkhanis 2025, Pass@K policy optimization",
    .target = "best_of",
    .target_of = [](const Config& config) { return "best_of[samples=" + std::to_string(config.best) + "]"; },
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::picks},  // of numbers the least loss has kinks, which a quadrature does not integrate exactly
    .promises = {promise::same_moments("rloo[samples=3]", "best=1,samples=3"), promise::unshifted(),
                 promise::unbiased("samples=3,best=2"), promise::unbiased("samples=4,best=3"),
                 promise::unbiased("samples=3,best=3"), promise::noiseless(Promise::Loss::constant)},
    .why_unsupported = [](const Config& config, const Structure&) -> std::string {
      const int K = config.samples, k = config.best;
      if (k > K) return "best must be at most samples: take more samples";
      return std::isfinite(binomial(K, k)) ? "" : "there are too many sets of `best` samples to count: take fewer of either";
    },
};
HARDGRAD_ESTIMATOR(BestOf, entry)

}  // namespace hardgrad::estimators::best_of
