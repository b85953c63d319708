// belief/LAYERS/ESTIMATOR  one gradient of a belief network: layers of 200 bits, 784 pixels, batch 50, K = 2, float, one thread
//
// Counters: mflop (of the products, forward and backward), of_sgemm (their time at the rate of a square product of size 1,024,
// timed just before, divided by the gradient's time), beyond_products (the remaining time in units of the products' time).
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/autodiff/product.hpp"
#include "core/autodiff/tape.hpp"
#include "core/estimator/estimator.hpp"
#include "experiments/benchmarks/parts_bench.hpp"

namespace hardgrad::benchmarks {
namespace {

constexpr int units = 200, side = 28, pixels = side * side, batch_size = 50, samples = 2;

/// Seconds of one floating-point operation of a square product, the best of five.
double seconds_per_flop() {
  constexpr std::size_t n = 1024;
  const std::vector<float> x(n * n, 0.5f);
  double best = 1;
  for (int round = 0; round < 6; ++round) {  // the first warms up
    Tape<float> tape;
    const auto a = tape.constant(MatrixView<const float>{x.data(), n, n});
    const auto start = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(matmul(a, a).value().data);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (round > 0) best = std::min(best, took.count());
  }
  return best / (2.0 * n * n * n);
}

void gradient(benchmark::State& state, int layers, const std::string& spec) {
  const auto model = make_model<float>(Spec::parse(fmt::format("belief_network[layers={},units={}]", layers, units)),
                                       {{"height", side}, {"width", side}, {"levels", 2}}, Key(1));
  Batch batch;
  auto& image = batch.reals["image"] = zeros<double>({batch_size, side, side});
  for (std::uint32_t b = 0; b < batch_size; ++b) batch.id.push_back(b);
  for (std::size_t i = 0; i < image.size(); ++i) image.flat(i) = i % 3 == 0;
  const auto estimator = make_estimator<float>(Spec::parse(spec), model->structure(), Key(2));
  // Hard choices need no gradient: each product is computed forward and for its weights.
  const double flop = 2.0 * batch_size * samples * 2 * ((layers - 1.0) * units * units + static_cast<double>(units) * pixels);
  const double products = flop * seconds_per_flop();
  Tape<float> tape;
  std::vector<float> into(model->parameters().size());
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    tape.clear();
    KeyedRandomness random(Key(3));
    const auto estimate = estimator->draw({tape, *model, batch, random});
    differentiate(estimate.surrogate, model->parameters(), into);
    benchmark::DoNotOptimize(into.data());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const double each = took.count() / static_cast<double>(state.iterations());
  state.counters["mflop"] = flop / 1e6;
  state.counters["of_sgemm"] = products / each;
  state.counters["beyond_products"] = (each - products) / products;
}

}  // namespace

void add_belief_networks() {
  for (int layers : {1, 2})
    for (const auto* spec : {"reinforce[samples=2]", "rloo[samples=2]", "disarm[samples=2]"})
      if (layers == 1 || std::string_view(spec).starts_with("r"))
        benchmark::RegisterBenchmark(fmt::format("belief/{}/{}", layers, spec).c_str(), [=](benchmark::State& state) {
          gradient(state, layers, spec);
        })->Unit(benchmark::kMicrosecond);
}

}  // namespace hardgrad::benchmarks
