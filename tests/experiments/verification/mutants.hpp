// A small right network and its data, and a deliberately wrong variant ("mutant") for every fault: `hardgrad test` must
// distinguish them.
#pragma once

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/nn/layers.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::testing {

/// h_0 = tanh(x); at step t two simultaneous choices among the example's places by softmax(A h_t); h_{t+1} = tanh(W h_t +
/// E[places]); the cost is (v . h_{t+1} - y)^2. A posterior uses softmax(G h_t). `fault` names the fault.
template <class T>
class Walker final : public Model<T> {
 public:
  static constexpr int places = 3, hidden = 2, longest = 2, columns = 2;

  explicit Walker(const Blueprint& b) : fault_(b.settings.text("fault")) {
    auto& set = this->parameters_;
    core_ = {set, "core", hidden, hidden, b.init};
    score_ = {set, "score", hidden, places * columns, b.init};
    out_ = {set, "out", hidden, 1, b.init};
    embedding_ = {set, "embedding", places * columns, hidden, b.init, 0.8};
    structure_.sites = {{.name = is("site name") ? "other" : "place",
                         .options = is("options") ? places - 1 : places,
                         .times = is("steps") ? 1 : steps(),
                         .state_width = is("state width") ? hidden + 1 : hidden,
                         .scope = is("dependence")                    ? DependenceScope::later_costs
                                  : is("joint cost") || is("chained") ? DependenceScope::own_costs
                                  : is("column costs")                ? DependenceScope::own_column
                                                                      : DependenceScope::later_choices,
                         .columns = is("columns") ? 1 : columns}};
    if ((structure_.posterior = b.posterior)) guide_ = {set, "guide", hidden, places * columns, b.init};
    structure_.rewards = is("rewards");
    if (is("unasked site")) structure_.sites.push_back({.name = "nowhere", .options = 2});
  }

  const Structure& structure() const override { return structure_; }
  using SiteExtent = typename Model<T>::SiteExtent;
  SiteExtent site_extent(const Batch& batch, std::size_t site, int example) const override {
    if (site > 0) return {{1}, 1};
    return {std::vector<int>(columns, batch.ints("places")(example) - is("outcomes")), length(batch, example)};
  }

  void run(const Batch& batch, Episode<T>& episode) const override {
    if (is("throws")) throw std::runtime_error("out of luck");
    auto& tape = episode.tape();
    const auto x = constant_of(tape, batch, "x");
    const auto root = episode.root();
    auto start = tanh(x);
    if (is("batch leak")) start = add(start, on(std::vector<int>(root->size(), 0), start));
    if (is("padding leak")) start = affine(start, static_cast<T>(1.0 / static_cast<double>(extent(batch.ints("word"), 1))));
    auto rows = root;
    auto h = start;
    for (int t = 0; t < steps(); ++t) {
      std::vector<int> options;
      for (int b : rows->example)
        for (int d = 0; d < columns; ++d)
          options.push_back(t < length(batch, b) ? batch.ints("places")(b) + (is("too many") ? places : 0) : 1);
      const bool fed = !is("joint cost") && !is("chained");  // choices feed later ones
      const auto asks = fed ? h : on(rows->example, start);
      auto scores = reshape(score_(asks), places);
      if (is("posterior support")) scores = affine(scores, T{1e4});  // all on one option
      if (is("posterior moves") && guide_.weight) scores = affine(scores, T{2});
      const auto choice =
          episode.choose({.name = "place",
                          .rows = rows,
                          .prior = categorical(scores, options, columns),
                          .state = is("state") ? Var<T>{} : asks,
                          .posterior = [&] { return categorical(reshape(guide_(asks), places), options, columns); }});
      auto chosen = choice.one_hot(tape, places);
      if (is("hard answers") && choice.hard()) chosen = affine(chosen, T{2});
      auto read = matmul(reshape(chosen, places * columns), tape.parameter(*embedding_.weight));
      if (is("sample leak")) read = add(read, affine(on(first_of_example(*choice.rows), read), T(0.1)));
      // If the question is asked on the root's rows again, h is on other rows: those of the earlier answer.
      auto before = is("joint cost") && t > 0 ? h : on(choice.rows->parent, is("chained") ? asks : h);
      if (is("shared state") && !choice.unshared) before = on(first_of_example(*choice.rows), before);
      h = tanh(add(core_(before), is("gradient") ? tape.detach(read) : read));
      if (is("repeated")) h = affine(h, static_cast<T>(1 + 1e-3 * ++runs_));
      if (is("float") && sizeof(T) == 4) h = affine(h, T(1.1));
      pay(batch, episode, choice.rows, t, h);
      rows = is("joint cost") ? root : choice.rows;
    }
  }

 private:
  bool is(const char* fault) const { return fault_ == fault; }
  int steps() const { return is("column costs") ? 1 : longest; }
  static int length(const Batch& batch, int example) { return batch.ints("length")(example); }
  static Var<T> on(const std::vector<int>& row, Var<T> x) { return gather_rows(x, std::span<const int>(row)); }
  static std::vector<int> first_of_example(const Rows& rows) {
    std::vector<int> first(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) first[r] = static_cast<int>(r) - rows.replica[r];
    return first;
  }
  /// Finished rows have no cost.
  void pay(const Batch& batch, Episode<T>& episode, const RowsPtr& rows, int t, Var<T> h) const {
    auto& tape = episode.tape();
    auto loss = square(subtract(out_(h), on(rows->example, constant_of(tape, batch, "y"))));
    if (is("not finite")) loss = log(affine(loss, T{-1}, T{-1}));
    const auto alive = tape.constant(loss.rows(), 1);
    for (std::size_t r = 0; r < loss.rows(); ++r) tape.mutable_value(alive).data[r] = t < length(batch, rows->example[r]);
    loss = scale_rows(loss, alive);
    episode.cost(is("cost rows") ? episode.root() : rows, is("column costs") ? concat_columns({loss, loss}) : loss);
  }

  std::string fault_;
  mutable int runs_ = 0;
  Structure structure_;
  Linear<T> core_, score_, out_, guide_;
  Embedding<T> embedding_;
};

/// Twelve walks in training and six in the held-out split, of different lengths, places and words.
class Walks final : public tasks::Task {
 public:
  Walks(const Settings& settings, Key data) : fault_(settings.text("fault")), data_(data) {
    static int made = 0;
    if (is("seed")) data_ = data_ / static_cast<std::uint64_t>(++made);
  }
  Dimensions dimensions() const override { return is("dimensions") ? Dimensions{} : Dimensions{{"walks", 1}}; }
  std::size_t size(tasks::Split split) const override {
    return split == tasks::Split::train ? (is("empty") ? 0 : 12) : split == tasks::Split::heldout ? 6 : 0;
  }
  Batch batch(tasks::Split split, const std::vector<int>& indices) const override {
    Batch batch;
    std::vector<int> number;
    for (int i : indices) number.push_back(i + (split == tasks::Split::heldout && !is("ids") ? 12 : 0));
    std::size_t width = is("padding") ? 3 : 0;
    for (int n : number) width = std::max<std::size_t>(width, words(n));
    const std::size_t B = indices.size();
    batch.reals = {{"x", zeros<double>({B, 2})}, {"y", zeros<double>({is("fields") ? B + 1 : B})}};
    batch.integers = {{"length", zeros<int>({B})}, {"places", zeros<int>({B})}, {"word", full<int>({B, width}, -1)}};
    for (std::size_t b = 0; b < B; ++b) {
      const auto n = static_cast<std::uint32_t>(number[b]);
      KeyedRandomness random(data_ / std::uint64_t{n + (is("ids") && split == tasks::Split::heldout ? 12 : 0)});
      batch.id.push_back(n);
      for (std::uint32_t i = 0; i < 2; ++i) row_of(batch.reals["x"], b)[i] = 2 * random.uniform({.index = i}) - 1;
      batch.reals["y"](b) =
          is("not finite") && n == 3 ? std::numeric_limits<double>::quiet_NaN() : random.uniform({.index = 3});
      batch.integers["length"](b) = n % 3 == 0 ? 1 : 2;
      batch.integers["places"](b) = n % 2 == 0 ? 2 : 3;
      for (int w = 0; w < words(number[b]); ++w) row_of(batch.integers["word"], b)[w] = w;
      if (is("order")) batch.integers["places"](b) = b % 2 == 0 ? 2 : 3;
      if (is("padding") && B == 1 && words(number[b]) < 3) row_of(batch.integers["word"], b)[2] = 7;
    }
    return batch;
  }
  Batch training_batch(const std::vector<int>& indices, Key epoch) const override {
    auto batch = this->batch(tasks::Split::train, indices);
    static std::uint64_t drawn = 0;
    if (is("training ids")) batch.id[0] += 100;
    if (is("training noise")) batch.reals["y"].flat(0) = static_cast<double>(epoch.value() % 100 + ++drawn);
    return batch;
  }
  std::vector<tasks::Metric> metrics() const override {
    return {{.name = "error", .unit = "1"}, {.name = is("metrics") ? "error" : "walks", .unit = "1"}};
  }
  void score(const Batch& batch, const tasks::Observation&, std::vector<tasks::Metric>& metrics) const override {
    metrics[0].numerator += is("infinite metric") ? std::numeric_limits<double>::infinity() : 1;
    for (auto& metric : metrics) metric.denominator += batch.examples();
  }

 private:
  bool is(const char* fault) const { return fault_ == fault; }
  static int words(int n) { return 1 + n % 3; }
  std::string fault_;
  Key data_;
};

inline const std::vector<ParameterInfo> fault_parameter{ParameterInfo::text("fault", "none", "the fault")};

}  // namespace hardgrad::testing
