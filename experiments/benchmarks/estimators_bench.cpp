// hardgrad-bench: what a gradient of each estimator costs on each model, and how noisy it is.
//
// Time is one gradient on one thread. Counters: rows (model rows per gradient), variance and squared_bias (traces over all
// parameters, from 64 replicates), work_normalised_variance (variance x rows).
#include <benchmark/benchmark.h>
#include <tbb/global_control.h>

#include "experiments/verification/problems.hpp"
#include "experiments/measurement/measure.hpp"

namespace hardgrad::benchmarks {
namespace {

using verification::Problem;
using verification::Setting;

void gradient(benchmark::State& state, const Problem& problem, const std::string& text) {
  const auto spec = Spec::parse(text);
  const Setting setting(problem, Estimators::instance().at(spec.name).posterior);
  const auto& model = *setting.model;
  if (const auto reason = unsupported(spec, model.structure()); !reason.empty()) {
    state.SkipWithError(reason.c_str());
    return;
  }
  const auto estimator = make_estimator<float>(spec, model.structure(), Key(2));
  Tape<float> tape;
  std::vector<float> into(model.parameters().size());
  std::uint64_t replicate = 0;
  for (auto _ : state) {
    tape.clear();
    KeyedRandomness random(Key(3) / replicate++);
    const auto estimate = estimator->estimate({tape, model, setting.batch, random});
    tape.backward(estimate.surrogate);
    std::fill(into.begin(), into.end(), 0.0f);
    tape.add_gradient(model.parameters(), std::span<float>(into));
    benchmark::DoNotOptimize(into.data());
  }
  MeasureSettings settings;
  settings.replicates = 64;
  const auto m = measure(spec, *estimator, model, setting.batch, settings, Key(4));
  state.counters["rows"] = m.rows;
  state.counters["variance"] = m.variance;
  state.counters["squared_bias"] = m.squared_bias;
  state.counters["work_normalised_variance"] = m.work_normalised_variance;
}

void register_all() {
  for (const auto& problem : verification::problems())
    for (const auto& [name, entry] : Estimators::instance().entries()) {
      std::vector<std::string> specs = {name};
      for (const auto& parameter : entry.parameters)  // growth with the number of samples
        if (parameter.name == "samples") specs = {name + "[samples=2]", name + "[samples=8]"};
      for (const auto& spec : specs)
        benchmark::RegisterBenchmark((problem.name + "/" + spec).c_str(), [&problem, spec](benchmark::State& state) {
          gradient(state, problem, spec);
        })->Unit(benchmark::kMicrosecond);
    }
}

}  // namespace
}  // namespace hardgrad::benchmarks

int main(int argc, char** argv) {
  tbb::global_control one_thread(tbb::global_control::max_allowed_parallelism, 1);
  hardgrad::benchmarks::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
