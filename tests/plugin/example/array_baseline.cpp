// array_baseline: the score function, minus the mean loss of the other samples, in xtensor's terms.
#include <hardgrad/plugin.hpp>

using namespace hardgrad;

struct Config {
  int samples = 4;

  void declare(Fields& field) { field(samples, "samples", 2, 1e6, "independent samples per example"); }
};

template <class T>
struct ArrayBaseline final : Estimator<T> {
  Config config;
  ArrayBaseline(const Config& config, const Structure&, Key) : config(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const auto K = static_cast<std::size_t>(config.samples);
    Sampled<T> sampled(problem, config.samples);  // K rows per example, in the order (b, k)
    const auto losses = sampled.losses();         // [B K]
    const Array<double> f = shaped<double>({losses.size() / K, K}, losses);
    const Array<double> total = xt::sum(f, {1}, xt::keep_dims);  // an array: xtensor 0.24 misreads a lazy sum that is broadcast
    const Array<double> others = (total - f) / (K - 1.0);
    const Array<double> signal = f - others;
    const auto surrogate = add(sampled.score(std::vector(sampled.steps(), signal.storage())), sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
  }
};

const EstimatorEntry entry = {.name = "array_baseline",
                              .summary = "score function minus the mean loss of the other samples",
                              .paper = "none: an example",
                              .evaluations = "K",
                              .parameters = declared<Config>(),
                              .needs = {need::log_density},
                              .promises = {promise::same_moments("rloo[samples=3]", "samples=3")}};
HARDGRAD_ESTIMATOR(ArrayBaseline, entry)
