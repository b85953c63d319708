// The parts of a gradient: operations, forward and backward, and their growth with size; trees with and without shared
// prefixes; replicates in one run and in separate runs.
//
// op/NAME/...  time of one forward and backward; items/s are output numbers (products: FLOP of the forward product)
// gemm/MxNxK   a single product, on one thread and on all; items/s are multiplications. OpenBLAS takes a lock in every call,
//              so Hardgrad's loops compute products with up to kernels::small_product of them; 8x8x16 is the largest
// grow/AXIS:n  a gradient of a sequential translator when batch B, samples K, steps T, source words S or width H grows; its rows,
//              and the tape's memory for each
// tree/...     the exact gradient of a translator with T = 3 choices of S options; rows are counted
// replicates/  64 replicates of rloo[samples=4]: separate gradients, gradients that share the choice-independent part, and at
//              the logits with 32 per run; grow/M:n the latter two
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/recurrent_cells.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/autodiff/subsets.hpp"
#include "core/autodiff/tape.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/nn/layers.hpp"
#include "experiments/benchmarks/parts_bench.hpp"
#include "experiments/measurement/at_logits.hpp"

namespace hardgrad::benchmarks {
namespace {

using Matrix = Array<float>;

Matrix numbers(std::size_t rows, std::size_t cols) {
  Matrix x = zeros<float>({rows, cols});
  for (std::size_t i = 0; i < x.size(); ++i) x.flat(i) = std::sin(static_cast<float>(i));
  return x;
}
Var<float> on(Tape<float>& tape, const Matrix& x) { return tape.input({x.data(), x.shape()[0], x.shape()[1]}); }

template <class F>
void time_operation(benchmark::State& state, const std::vector<Matrix>& inputs, F operation) {
  Tape<float> tape;
  std::size_t size = 0;
  for (auto _ : state) {
    tape.clear();
    std::vector<Var<float>> x;
    x.reserve(inputs.size());
    for (const auto& input : inputs) x.push_back(on(tape, input));
    const auto y = operation(x);
    size = y.value().size();
    tape.backward_to_leaves(sum(y));
    benchmark::DoNotOptimize(tape.gradient(x[0]).data);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * size));
  state.counters["bytes"] = static_cast<double>(tape.arena().used());
}

void add_operations() {
  const auto add = [](const std::string& name, std::vector<Matrix> inputs, auto operation) {
    benchmark::RegisterBenchmark(("op/" + name).c_str(), [=](benchmark::State& state) {
      time_operation(state, inputs, operation);
    })->Unit(benchmark::kMicrosecond);
  };
  for (std::size_t n : {32, 128, 512}) {
    add(fmt::format("linear/{0}x{0}x{0}", n), {numbers(n, n), numbers(n, n)},
        [](auto& x) { return linear(x[0], x[1], Var<float>{}); });
    add(fmt::format("lstm_cell/256x{}", n), {numbers(256, 4 * n), numbers(256, n)},
        [](auto& x) { return lstm_cell(x[0], x[1]).h; });
    const std::vector<int> example = [] {
      std::vector<int> e(256);
      for (std::size_t r = 0; r < e.size(); ++r) e[r] = static_cast<int>(r) / 8;
      return e;
    }();
    const Items items(32, 20);
    add(fmt::format("additive_scores/256x20x{}", n), {numbers(256, n), numbers(640, n), numbers(1, n)},
        [=](auto& x) { return additive_scores(x[0], x[1], x[2], std::span<const int>(example), items); });
    add(fmt::format("dot_scores/256x20x{}", n), {numbers(256, n), numbers(640, n)},
        [=](auto& x) { return dot_scores(x[0], x[1], std::span<const int>(example), items); });
    add(fmt::format("mix/256x20x{}", n), {numbers(256, 20), numbers(640, n)},
        [=](auto& x) { return mix(x[0], x[1], std::span<const int>(example), items); });
    const std::vector<int> options(512, static_cast<int>(n));
    add(fmt::format("log_softmax/512x{}", n), {numbers(512, n)},
        [=](auto& x) { return log_softmax(x[0], std::span<const int>(options)); });
  }
  const std::vector<int> thousand(64, 1000);
  add("log_softmax/64x1000", {numbers(64, 1000)}, [=](auto& x) { return log_softmax(x[0], std::span<const int>(thousand)); });
  std::vector<int> each(64), picked(64 * 10);
  for (int c = 0; c < 640; ++c) each[c / 10] = c / 10, picked[c] = 97 * (c % 10);
  add("subset_log_probability/64x1000x10", {numbers(64, 1000)}, [=](auto& x) {
    return subset_log_probability(x[0], std::span<const int>(thousand), 10, std::span<const int>(each),
                                  std::span<const int>(picked));
  });
  add("subset_marginals/64x1000x10", {numbers(64, 1000)},
      [=](auto& x) { return subset_marginals(x[0], std::span<const int>(thousand), 10); });
  for (std::size_t classes : {6, 100, 2000}) {
    const std::vector<int> label(512, 1);
    add(fmt::format("linear_cross_entropy/512x64x{}", classes), {numbers(512, 64), numbers(classes, 64)},
        [=](auto& x) { return linear_cross_entropy(x[0], x[1], Var<float>{}, std::span<const int>(label)).loss; });
  }
}

void add_products() {
  struct Shape {
    std::size_t m, n, k;
  };
  for (const auto& [m, n, k] : {Shape{1, 4, 4}, {4, 4, 4}, {8, 8, 8}, {8, 8, 16}, {9, 8, 16}, {32, 32, 32}, {128, 128, 128}})
    benchmark::RegisterBenchmark(fmt::format("gemm/{}x{}x{}", m, n, k).c_str(),
                                 [=](benchmark::State& state) {
                                   const auto a = numbers(m, k), b = numbers(n, k);
                                   auto c = numbers(m, n);
                                   const auto view = [](const Matrix& x) {
                                     return MatrixView<const float>{x.data(), x.shape()[0], x.shape()[1]};
                                   };
                                   for (auto _ : state) {
                                     gemm<float>(view(a), false, view(b), true, MatrixView<float>{c.data(), m, n});
                                     benchmark::DoNotOptimize(c.data());
                                     benchmark::ClobberMemory();
                                   }
                                   state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * m * n * k));
                                 })
        ->ThreadPerCpu()
        ->Threads(1);
}

/// A translator on sentences of one length.
struct Size {
  int batch = 8, samples = 4, steps = 8, options = 8, width = 32;
};
struct Scene {
  std::unique_ptr<Model<float>> model;
  Batch batch;
  explicit Scene(const Size& n, const std::string& feed = "sampled") {
    const int words = 100;
    model = make_model<float>(Spec::parse(fmt::format("translator[embedding={0},hidden={0},feed={1}]", n.width, feed)),
                              {{"source_vocabulary", words},
                               {"target_vocabulary", words},
                               {"source_length", n.options},
                               {"target_length", n.steps},
                               {"bos", 2},
                               {"eos", 3}},
                              Key(1));
    const std::size_t B = n.batch, L = n.options, T = n.steps;
    Array<int> source = zeros<int>({B, L}), target = zeros<int>({B, T});
    for (std::size_t i = 0; i < source.size(); ++i) source.flat(i) = 4 + static_cast<int>(7 * i % (words - 4));
    for (std::size_t i = 0; i < target.size(); ++i) target.flat(i) = 4 + static_cast<int>(5 * i % (words - 4));
    for (std::size_t b = 0; b < B; ++b) batch.id.push_back(static_cast<std::uint32_t>(b));
    batch.integers = {{"source", std::move(source)},
                      {"target", std::move(target)},
                      {"source_length", full<int>({B}, n.options)},
                      {"target_length", full<int>({B}, n.steps)}};
  }
};

/// One gradient on a tape that was cleared or rewound; returns its rows.
template <class Estimate>
double take(Tape<float>& tape, const Scene& scene, std::vector<float>& gradient, Estimate&& estimate) {
  const auto made = estimate(tape);
  gradient.resize(scene.model->parameters().size());
  differentiate(made.surrogate, scene.model->parameters(), gradient);
  return made.rows();
}

void add_growth_of_parts() {
  const auto add = [](const char* axis, int value, Size size) {
    benchmark::RegisterBenchmark(fmt::format("grow/{}:{}", axis, value).c_str(), [=](benchmark::State& state) {
      const Scene scene(size);
      const auto estimator =
          make_estimator<float>(Spec::parse(fmt::format("rloo[samples={}]", size.samples)), scene.model->structure(), Key(2));
      Tape<float> tape;
      std::vector<float> gradient;
      for (auto _ : state) {
        tape.clear();
        state.counters["rows"] = take(tape, scene, gradient, [&](Tape<float>& tape) {
          KeyedRandomness random(Key(3));
          return estimator->draw({tape, *scene.model, scene.batch, random});
        });
      }
      state.counters["bytes/row"] = static_cast<double>(tape.arena().used()) / state.counters["rows"].value;
    })->Unit(benchmark::kMicrosecond);
  };
  for (int n : {2, 8, 32, 128}) add("B", n, {.batch = n});
  for (int n : {2, 8, 32, 128}) add("K", n, {.samples = n});
  for (int n : {2, 8, 32}) add("T", n, {.steps = n});
  for (int n : {2, 8, 32}) add("S", n, {.options = n});
  for (int n : {8, 32, 128, 256}) add("H", n, {.width = n});
}

/// Every complete path as a separate sample: the same leaves without shared prefixes.
std::vector<std::vector<int>> every_path(int batch, int steps, int options) {
  const int paths = static_cast<int>(std::lround(std::pow(options, steps)));
  std::vector<std::vector<int>> option(steps);
  for (int t = 0; t < steps; ++t)
    for (int b = 0; b < batch; ++b)
      for (int path = 0; path < paths; ++path)
        option[t].push_back(path / static_cast<int>(std::lround(std::pow(options, steps - 1 - t))) % options);
  return option;
}

void add_trees() {
  for (int options : {2, 5, 10, 14})
    for (bool shared : {true, false})
      benchmark::RegisterBenchmark(
          fmt::format("tree/{}/S:{}", shared ? "shared_prefixes" : "every_path", options).c_str(),
          [=](benchmark::State& state) {
            const Size size{.batch = 2, .steps = 3, .options = options};
            const Scene scene(size);
            Tape<float> tape;
            std::vector<float> gradient;
            KeyedRandomness unused{Key{}};
            for (auto _ : state) {
              tape.clear();
              state.counters["rows"] = take(tape, scene, gradient, [&](Tape<float>& tape) {
                if (shared) return exact_objective<float>("expected_loss", {tape, *scene.model, scene.batch, unused}, 1e9);
                ForcedHandler<float> handler(every_path(size.batch, size.steps, size.options));
                auto episode = std::make_unique<Episode<float>>(tape, handler, size.batch);
                episode->use_independent_rows();
                scene.model->run(scene.batch, *episode);
                const auto loss = expected_loss(*episode);
                return Estimate<float>{.surrogate = loss, .episode = std::move(episode)};
              });
            }
          })
          ->Unit(benchmark::kMicrosecond);
}

void add_replicates() {
  const auto add = [](const std::string& name, const std::string& feed, const std::string& how, int count) {
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      const Scene scene(Size{}, feed);
      const auto estimator = make_estimator<float>(Spec::parse("rloo[samples=4]"), scene.model->structure(), Key(2));
      Tape<float> tape;
      std::vector<float> gradient;
      for (auto _ : state) {
        if (how == "at_logits") {
          for (int first = 0; first < count; first += 32)
            measurement::gradients_at_logits(tape, *estimator, *scene.model, scene.batch, Key(3), first,
                                             std::min(32, count - first));
          continue;
        }
        for (int m = 0; m < count; ++m) {
          how == "alone" ? tape.clear() : tape.rewind();
          take(tape, scene, gradient, [&](Tape<float>& tape) {
            KeyedRandomness random(Key(3) / static_cast<std::uint64_t>(m));
            return estimator->draw({tape, *scene.model, scene.batch, random});
          });
        }
      }
    })->Unit(benchmark::kMillisecond);
  };
  for (const auto* feed : {"none", "sampled"})
    for (const auto* how : {"alone", "shared", "at_logits"})
      add(fmt::format("replicates/{}/feed:{}", how, feed), feed, how, 64);
  for (const auto* how : {"shared", "at_logits"})
    for (int count : {4, 16, 64, 256}) add(fmt::format("grow/M:{}/{}", count, how), "sampled", how, count);
}

}  // namespace

void add_parts() {
  add_operations();
  add_products();
  add_growth_of_parts();
  add_trees();
  add_replicates();
}

}  // namespace hardgrad::benchmarks
