// four_ends: a network that declares one choice and makes four, on three lamps. The declaration is wrong, not the network.
// `hardgrad test` reports this, before an estimator exceeds the memory that it allocated for one choice.
#include <hardgrad/plugin.hpp>

#include <hardgrad/experiments/tasks/task.hpp>

using namespace hardgrad;
using namespace hardgrad::tasks;

template <class T>
class FourEnds final : public Model<T> {
 public:
  explicit FourEnds(const Blueprint& b) : lamps_(b.dimensions.at("ends")) {
    structure_.sites = {{.name = "end", .options = lamps_, .times = 1, .state_width = lamps_}};
    reader_ = Linear<T>(this->parameters_, "reader", lamps_, lamps_, b.init);
  }
  const Structure& structure() const override { return structure_; }
  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const auto& light = batch.numbers("light");
    const std::vector<T> values(light.begin(), light.end());
    auto x = tape.constant(MatrixView<const T>{values.data(), light.shape()[0], light.shape()[1]});
    auto rows = episode.root();
    for (int end = 0; end < 4; ++end) {
      const auto choice = episode.choose({"end", rows, categorical(reader_(x), std::vector<int>(rows->size(), lamps_)), x});
      x = gather_rows(x, std::span<const int>(choice.rows->parent));
      const auto seen = multiply(choice.one_hot(tape, lamps_), x);
      episode.cost(choice.rows, square(affine(row_sums(seen), T{-1}, T{1})));
      rows = choice.rows;
    }
  }

 private:
  int lamps_;
  Structure structure_;
  Linear<T> reader_;
};

const ModelEntry entry = {
    .name = "four_ends",
    .summary = "declares one choice and makes four",
    .paper = "none: a mistake",
    .dependence = "one choice",
    .kinds = "categorical",
    .parameters = {},
    .needs = {"ends"},
};
HARDGRAD_MODEL(FourEnds, entry)

/// Field: reals "light" [B, 3], one-hot.
class Ends final : public Task {
 public:
  Ends(const Settings&, Key) {}
  Dimensions dimensions() const override { return {{"ends", 3}}; }
  std::size_t size(Split) const override { return 3; }
  Batch batch(Split split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.reals["light"] = zeros<double>({indices.size(), 3});
    for (std::size_t b = 0; b < indices.size(); ++b) {
      batch.id.push_back(static_cast<std::uint32_t>(indices[b] + 3 * static_cast<int>(split)));
      row_of(batch.reals["light"], b)[indices[b]] = 1;
    }
    return batch;
  }
};

const TaskEntry task = {
    .name = "ends",
    .summary = "one of three lamps is lit",
    .data = "none: closed form",
    .default_model = "four_ends",
};
HARDGRAD_TASK(Ends, task)
