// median_baseline: the score function, minus the median loss of the other samples.
#include <hardgrad/plugin.hpp>

#include <algorithm>

using namespace hardgrad;

struct Config {
  int samples = 5;  // the default

  void declare(Fields& field) { field(samples, "samples", 2, 1e6, "independent samples per example"); }
};

template <class T>
struct MedianBaseline final : Estimator<T> {
  int samples;
  MedianBaseline(const Config& config, const Structure&, Key) : samples(config.samples) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, samples);  // K rows per example, in the order (b, k)
    auto signal = sampled.losses();        // [B K]
    for (std::size_t b = 0; b < signal.size(); b += samples) {
      const std::vector<double> f(&signal[b], &signal[b] + samples);
      for (int k = 0; k < samples; ++k) {
        auto others = f;
        others.erase(others.begin() + k);
        std::nth_element(others.begin(), others.begin() + (samples - 1) / 2, others.end());
        signal[b + k] -= others[(samples - 1) / 2];
      }
    }
    const auto surrogate = add(sampled.score(std::vector(sampled.steps(), signal)), sampled.path());  // to differentiate
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
  }
};

const EstimatorEntry entry = {.name = "median_baseline",
                              .summary = "score function minus the median loss of the other samples",
                              .paper = "none: an example",
                              .evaluations = "K",
                              .parameters = declared<Config>(),
                              .needs = {need::log_density},
                              .promises = {promise::unshifted()}};  // a constant added to the loss does not change the estimate
HARDGRAD_ESTIMATOR(MedianBaseline, entry)
