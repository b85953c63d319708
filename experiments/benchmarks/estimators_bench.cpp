// hardgrad-bench: cost and variance of each estimator's gradient on each model.
//
// MODEL/ESTIMATOR, and on bits growth/samples|options|choices:N/ESTIMATOR and columns/bits:N,options:S/ESTIMATOR. Time is one
// gradient on one thread. Counters: rows (model rows per gradient), variance and squared_bias (traces over all parameters, from
// 64 replicates), work_normalised_variance (variance x rows).
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>

#include "core/autodiff/tape.hpp"
#include "experiments/benchmarks/parts_bench.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/verification/scenes.hpp"

namespace hardgrad::benchmarks {
namespace {

using verification::SceneSpec;
using verification::SmallScene;

void gradient(benchmark::State& state, const SceneSpec& scene, const std::string& text) {
  const auto spec = Spec::parse(text);
  const SmallScene made(scene, wants_posterior(spec));
  const auto& model = *made.model;
  if (const auto reason = why_unsupported(spec, model.structure()); !reason.empty()) {
    state.SkipWithError(reason.c_str());
    return;
  }
  const tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
  const auto estimator = make_estimator<float>(spec, model.structure(), Key(2));
  Tape<float> tape;
  std::vector<float> into(model.parameters().size());
  std::uint64_t replicate = 0;
  for (auto _ : state) {
    tape.clear();
    KeyedRandomness random(Key(3) / replicate++);
    const auto estimate = estimator->draw({tape, model, made.batch, random});
    differentiate(estimate.surrogate, model.parameters(), into);
    benchmark::DoNotOptimize(into.data());
  }
  measurement::MeasureSettings settings;
  settings.replicates = 64;
  const auto m = measure(spec, *estimator, model, made.batch, settings, Key(4));
  state.counters["rows"] = m.rows;
  state.counters["variance"] = m.variance;
  state.counters["squared_bias"] = m.squared_bias;
  state.counters["work_normalised_variance"] = m.work_normalised_variance;
}

bool has_samples(const EstimatorEntry& entry) {
  return std::any_of(entry.parameters.begin(), entry.parameters.end(), [](const auto& p) { return p.name == "samples"; });
}

void add(const std::string& name, const SceneSpec& scene, const std::string& spec) {
  const auto run = [scene, spec](benchmark::State& state) {
    try {
      gradient(state, scene, spec);
    } catch (const NotExact& e) {
      state.SkipWithError(e.what());
    }
  };
  benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond);
}

/// Every estimator on every model, with few samples and with more.
void add_models() {
  for (const auto& scene : verification::scene_specs())
    for (const auto& [name, entry] : Estimators::instance().entries())
      for (const auto* settings : has_samples(entry) ? std::vector{"[samples=2]", "[samples=8]"} : std::vector{""})
        add(scene.name + "/" + name + settings, scene, name + settings);
}

/// Growth with samples K, options S and choices T, on bits with separate costs.
void add_growth() {
  const auto bits = [](int choices, int options) {
    return SceneSpec{"bits", "bits", fmt::format("bits[bits={},options={},logit=0.3]", choices, options), 1};
  };
  for (const auto& [name, entry] : Estimators::instance().entries()) {
    if (has_samples(entry))
      for (int k : {2, 4, 8, 16})
        add(fmt::format("growth/samples:{}/{}", k, name), bits(8, 2), fmt::format("{}[samples={}]", name, k));
    for (int s : {2, 4, 8, 16, 32}) add(fmt::format("growth/options:{}/{}", s, name), bits(2, s), name);
    for (int t : {1, 2, 4, 8, 16, 32}) add(fmt::format("growth/choices:{}/{}", t, name), bits(t, 2), name);
  }
}

/// Many choices at once: bits, and three options.
void add_columns() {
  for (const auto* name : {"reinforce", "rloo[samples=2]", "disarm", "arms[samples=2]", "straight_through"})
    for (int columns : {50, 20000})
      for (int options : {2, 3})
        add(fmt::format("columns/bits:{},options:{}/{}", columns, options, name),
            {"bits", "bits", fmt::format("bits[bits={},options={},logit=0.3]", columns, options), 1}, name);
}

}  // namespace
}  // namespace hardgrad::benchmarks

int main(int argc, char** argv) {
  hardgrad::benchmarks::add_models();
  hardgrad::benchmarks::add_growth();
  hardgrad::benchmarks::add_columns();
  hardgrad::benchmarks::add_parts();
  hardgrad::benchmarks::add_belief_networks();
  hardgrad::benchmarks::add_sweeps();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
