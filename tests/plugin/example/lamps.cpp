// lamps: a model and a task outside the tree. One of S lamps is lit. The model chooses a lamp; a dark one costs 1.
//
// Choice: a lamp, by logits W x + b of all lamps x [S]. Cost f = (1 - x[choice])^2. Training moves W towards a large multiple
// of the identity.
// Parameters: reader.weight [S, S], reader.bias [S]; with posterior: posterior.weight [S, S], posterior.bias [S].
#include <hardgrad/plugin.hpp>

#include <hardgrad/experiments/tasks/task.hpp>

using namespace hardgrad;
using namespace hardgrad::tasks;

template <class T>
class LampReader final : public Model<T> {
 public:
  explicit LampReader(const Blueprint& b) {
    const auto& [settings, dimensions, init, posterior] = b;
    const int lamps = dimensions.at("lamps");
    structure_ = {.sites = {{.name = "lamp", .options = lamps, .state_width = lamps, .scope = DependenceScope::own_costs}},
                  .posterior = posterior};
    reader_ = Linear<T>(this->parameters_, "reader", lamps, lamps, init);
    if (structure_.posterior) posterior_ = Linear<T>(this->parameters_, "posterior", lamps, lamps, init);
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const auto rows = episode.root();  // one row per example; a handler may add rows
    const auto& light = batch.numbers("light");
    const std::vector<T> values(light.begin(), light.end());
    const auto x = tape.constant(MatrixView<const T>{values.data(), rows->size(), light.shape()[1]});
    const int lamps = structure_.most_options();
    const auto prior = categorical(reader_(x), std::vector<int>(rows->size(), lamps));
    Site<T> site{"lamp", rows, prior, x};
    if (structure_.posterior) site.posterior = [&] { return prior->with(posterior_(x)); };
    const auto choice = episode.choose(std::move(site));
    // Each row of the choice has the index of its parent row. one_hot works for sampled, enumerated and relaxed choices.
    const auto seen = multiply(choice.one_hot(tape, lamps), gather_rows(x, std::span<const int>(choice.rows->parent)));
    episode.cost(choice.rows, square(affine(row_sums(seen), T{-1}, T{1})));
  }

 private:
  Structure structure_;
  Linear<T> reader_, posterior_;
};

const ModelEntry entry = {
    .name = "lamp_reader",
    .summary = "chooses one of S lamps",
    .paper = "none: an example",
    .dependence = "one choice",
    .kinds = "categorical",
    .parameters = {},
    .needs = {"lamps"},
};
HARDGRAD_MODEL(LampReader, entry)

struct LampsConfig {
  int lamps = 4;
  void declare(Fields& field) { field(lamps, "lamps", 2, 1000, "lamps S"); }
};

/// Field: reals "light" [B, S], one-hot. Example i has lamp i mod S lit; the train split has 2 S examples, the others S.
class Lamps final : public Task {
 public:
  Lamps(const LampsConfig& config, Key) : lamps_(config.lamps) {}
  Dimensions dimensions() const override { return {{"lamps", lamps_}}; }
  std::size_t size(Split split) const override { return split == Split::train ? 2 * lamps_ : lamps_; }
  Batch batch(Split split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.reals["light"] = zeros<double>({indices.size(), static_cast<std::size_t>(lamps_)});
    for (std::size_t b = 0; b < indices.size(); ++b) {
      batch.id.push_back(static_cast<std::uint32_t>(indices[b] + 2 * lamps_ * static_cast<int>(split)));  // unique
      row_of(batch.reals["light"], b)[indices[b] % lamps_] = 1;
    }
    return batch;
  }
  std::vector<Metric> metrics() const override { return {{.name = "found", .unit = "1"}}; }
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    for (int b = 0; b < batch.examples(); ++b) {
      metrics[0].numerator += row_of(batch.numbers("light"), b)[row_of(seen.choices, b)[0]];
      metrics[0].denominator += 1;
    }
  }

 private:
  int lamps_;
};

const TaskEntry task = {
    .name = "lamps",
    .summary = "one lamp is lit: find it",
    .data = "none: closed form",
    .default_model = "lamp_reader",
    .parameters = declared<LampsConfig>(),
};
HARDGRAD_TASK(Lamps, task)
