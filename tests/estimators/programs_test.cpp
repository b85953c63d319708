// Small versions of networks of the field, each about as long as its equations: their declarations, the cost of their
// enumeration, and the exact gradient as mean of estimators. (Heads of attention: heads_test.cpp. Gaussian glimpses:
// numbers_test.cpp.)
#include <doctest/doctest.h>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/nn/layers.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::programs_test {
using namespace measurement;
namespace {

using V = Var<double>;

/// A batch of `count` examples, with a vector x and a target y each.
Batch examples(std::size_t count, std::size_t x, std::size_t y) {
  Batch batch;
  KeyedRandomness random(Key(31));
  batch.reals["x"] = zeros<double>({count, x});
  batch.reals["y"] = zeros<double>({count, y});
  for (std::uint32_t b = 0; b < count; ++b) {
    batch.id.push_back(b);
    for (std::uint32_t i = 0; i < x; ++i) row_of(batch.reals["x"], b)[i] = random.uniform({.example = b, .index = i}) - 0.5;
    for (std::uint32_t i = 0; i < y; ++i)
      row_of(batch.reals["y"], b)[i] = random.uniform({.example = b, .step = 1, .index = i});
  }
  return batch;
}

struct Program : Model<double> {
  Structure declared;
  const Structure& structure() const override { return declared; }
  /// Values of the asking rows, gathered for the rows that continue.
  static V after(const Choice<double>& choice, V x) { return gather_rows(x, std::span<const int>(choice.rows->parent)); }
};

/// h_t = tanh(h_{t-1} + E_o[operation] + E_c[column]): two choices with different numbers of options at each of two steps.
struct Programmer final : Program {
  static constexpr int operations = 5, table_columns = 6, steps = 2, H = 3;
  Linear<double> score{parameters_, "score", H, 2 * table_columns, Key(1)};
  Linear<double> apply{parameters_, "apply", 2 * table_columns, H, Key(1), false};
  Programmer() {
    declared.sites = {{.name = "instruction", .options = table_columns, .times = steps, .state_width = H, .columns = 2}};
  }
  SiteExtent site_extent(const Batch&, std::size_t, int) const override { return {{operations, table_columns}, steps}; }
  void run(const Batch& batch, Episode<double>& episode) const override {
    auto rows = episode.root();
    auto h = constant_of(episode.tape(), batch, "x"), y = constant_of(episode.tape(), batch, "y");
    for (int t = 0; t < steps; ++t) {
      std::vector<int> options;
      for (std::size_t r = 0; r < rows->size(); ++r) options.insert(options.end(), {operations, table_columns});
      const auto i = episode.choose({.name = "instruction",
                                     .rows = rows,
                                     .prior = categorical(reshape(score(h), table_columns), options, 2),
                                     .state = h});
      const auto chosen = reshape(i.one_hot(episode.tape(), table_columns), 2 * table_columns);  // of both, side by side
      h = tanh(add(after(i, h), apply(chosen)));
      y = after(i, y);
      rows = i.rows;
    }
    episode.cost(rows, row_sums(square(subtract(h, y))));
  }
};

/// A tape of N cells of width W. At each step a head reads a cell and another writes one; examples have different numbers of
/// cells.
///   e_di = k_d . M_i,  r = M_{i_read},  M_{i_write} += v,  h = tanh(W [h; r])
struct TuringMachine final : Program {
  static constexpr int most = 3, W = 2, H = 2, steps = 2;
  Linear<double> keys{parameters_, "keys", H, 2 * W, Key(2)}, value{parameters_, "value", H, W, Key(2)};
  Linear<double> core{parameters_, "core", H + W, H, Key(2)};
  Embedding<double> memory{parameters_, "memory", 1, most* W, Key(2), 0.7};
  TuringMachine() { declared.sites = {{.name = "heads", .options = most, .times = steps, .state_width = H, .columns = 2}}; }
  static int cells(const Batch& batch, int example) { return batch.id[example] % 2 == 0 ? 2 : most; }
  SiteExtent site_extent(const Batch& batch, std::size_t, int b) const override {
    return {{cells(batch, b), cells(batch, b)}, steps};
  }
  void run(const Batch& batch, Episode<double>& episode) const override {
    auto rows = episode.root();
    auto h = constant_of(episode.tape(), batch, "x"), y = constant_of(episode.tape(), batch, "y");
    auto M = memory(episode.tape(), std::vector<int>(rows->size(), 0));  // [R, N W]
    const auto cell = [&](int i) { return slice_columns(M, i * W, W); };
    for (int t = 0; t < steps; ++t) {
      const auto k = keys(h);
      const auto e = [&](int d, int i) { return row_sums(multiply(slice_columns(k, d * W, W), cell(i))); };
      std::vector<int> options;
      for (int b : rows->example) options.insert(options.end(), 2, cells(batch, b));
      const auto scores = concat_columns({e(0, 0), e(0, 1), e(0, 2), e(1, 0), e(1, 1), e(1, 2)});
      const auto i =
          episode.choose({.name = "heads", .rows = rows, .prior = categorical(reshape(scores, most), options, 2), .state = h});
      const auto w = reshape(i.one_hot(episode.tape(), most), 2 * most);
      h = after(i, h), M = after(i, M), y = after(i, y);
      const auto weighed = [&](int head, int c, V x) { return scale_rows(x, slice_columns(w, head * most + c, 1)); };
      const auto r = add(weighed(0, 0, cell(0)), add(weighed(0, 1, cell(1)), weighed(0, 2, cell(2))));
      const auto v = tanh(value(h));
      M = add(M, concat_columns({weighed(1, 0, v), weighed(1, 1, v), weighed(1, 2, v)}));
      h = tanh(core(concat_columns({h, r})));
      rows = i.rows;
    }
    episode.cost(rows, row_sums(square(subtract(h, y))));
  }
};

/// After each inner step h_n = tanh(W h_{n-1}) but the last it may halt and answer: the number of questions depends on the
/// choices. Halting at n costs (v . h_n - y)^2, and every step costs |h_n|^2.
struct Ponderer final : Program {
  static constexpr int most = 4, H = 2;
  Linear<double> core{parameters_, "core", H, H, Key(5)}, halt{parameters_, "halt", H, 2, Key(5)};
  Linear<double> out{parameters_, "out", H, 1, Key(5)};
  Ponderer() { declared.sites = {{.name = "halt", .options = 2, .times = most - 1, .state_width = H}}; }
  SiteExtent site_extent(const Batch&, std::size_t, int) const override { return {{most}, 1}; }  // when to halt
  void run(const Batch& batch, Episode<double>& episode) const override {
    auto& tape = episode.tape();
    auto rows = episode.root();
    auto h = constant_of(tape, batch, "x"), y = constant_of(tape, batch, "y"), there = tape.constant(rows->size(), 1, 1.0);
    for (int n = 1; n <= most; ++n) {
      h = tanh(core(h));
      const auto pay = [&](V who, V cost) { episode.cost(rows, multiply(who, cost)); };
      pay(there, row_sums(square(h)));
      const auto answered = [&] { return square(subtract(out(h), y)); };
      if (n == most) return pay(there, answered());
      std::vector<int> options;
      for (std::size_t r = 0; r < rows->size(); ++r) options.push_back(there.value().data[r] > 0 ? 2 : 1);
      const auto z = episode.choose({.name = "halt", .rows = rows, .prior = categorical(halt(h), options), .state = h});
      const auto w = z.one_hot(tape, 2);
      rows = z.rows;
      h = after(z, h), y = after(z, y), there = after(z, there);
      pay(multiply(there, slice_columns(w, 0, 1)), answered());
      there = multiply(there, slice_columns(w, 1, 1));
    }
  }
};

/// z^1 ~ Bern(b), z^2 ~ Bern(W z^1 + c), cost -log p(y | z^2) with p = Bern(V z^2 + d): a layer is a site with one column per
/// unit.
struct BeliefNetwork final : Program {
  int units;
  Linear<double> first, second, decoder;
  explicit BeliefNetwork(int n)
      : units(n),
        first(parameters_, "first", 1, n, Key(3)),
        second(parameters_, "second", n, n, Key(3)),
        decoder(parameters_, "decoder", n, 2, Key(3)) {
    declared.sites = {{.name = "layer1", .options = 2, .state_width = 1, .columns = n},
                      {.name = "layer2", .options = 2, .state_width = n, .scope = DependenceScope::own_costs, .columns = n}};
  }
  void run(const Batch& batch, Episode<double>& episode) const override {
    const auto one = episode.tape().constant(episode.examples(), 1, 1.0);
    const auto layer = [&](const char* name, const RowsPtr& rows, V logit, V state) {
      return episode.choose({.name = name, .rows = rows, .prior = bernoulli(logit), .state = state});
    };
    const auto bits = [&](const Choice<double>& z) {
      return reshape(slice_columns(z.one_hot(episode.tape(), 2), 1, 1), units);
    };
    const auto z1 = layer("layer1", episode.root(), first(one), one);
    const auto z2 = layer("layer2", z1.rows, second(bits(z1)), bits(z1));
    const auto y = after(z2, after(z1, constant_of(episode.tape(), batch, "y"))), logit = decoder(bits(z2));
    const auto softplus = log(affine(exp(logit), 1.0, 1.0));
    episode.cost(z2.rows, row_sums(subtract(softplus, multiply(y, logit))));
  }
};

/// Every token of one sentence has a partner in the other: a column per token, sentences of different lengths, one cost of all.
///   e_ti = a_t . b_i,  cost (v . tanh(sum_t a_t * b_{i_t}) - y)^2
struct SentencePair final : Program {
  static constexpr int most = 3, E = 2;
  Embedding<double> words{parameters_, "words", 2 * most, E, Key(4), 0.8};
  Linear<double> out{parameters_, "out", E, 1, Key(4)};
  SentencePair() {
    declared.sites = {
        {.name = "partner", .options = most, .state_width = E, .scope = DependenceScope::own_costs, .columns = most}};
  }
  static int tokens(const Batch& batch, int b) { return 1 + static_cast<int>(batch.id[b]) % most; }
  static int others(const Batch& batch, int b) { return most - static_cast<int>(batch.id[b]) % 2; }
  /// A padding token has one partner: no choice.
  static int partners(const Batch& batch, int b, int t) { return t < tokens(batch, b) ? others(batch, b) : 1; }
  SiteExtent site_extent(const Batch& batch, std::size_t, int b) const override {
    return {{partners(batch, b, 0), partners(batch, b, 1), partners(batch, b, 2)}, 1};
  }
  void run(const Batch& batch, Episode<double>& episode) const override {
    auto& tape = episode.tape();
    const int B = episode.examples();
    const auto a = words(tape, std::vector<int>{0, 1, 2}), b = words(tape, std::vector<int>{3, 4, 5});
    std::vector<int> every, options;
    for (int example = 0; example < B; ++example)
      for (int t = 0; t < most; ++t) {
        every.push_back(t);
        options.push_back(partners(batch, example, t));
      }
    const auto e = gather_rows(linear(a, b), std::span<const int>(every));
    const auto state = gather_rows(a, std::span<const int>(std::vector<int>(B, 0)));
    const auto i =
        episode.choose({.name = "partner", .rows = episode.root(), .prior = categorical(e, options, most), .state = state});
    const auto w = i.one_hot(tape, most);
    std::vector<int> token;
    auto real = tape.constant(w.rows(), 1);
    for (std::size_t c = 0; c < w.rows(); ++c) {
      token.push_back(static_cast<int>(c) % most);
      tape.mutable_value(real).data[c] = static_cast<int>(c) % most < tokens(batch, i.rows->example[c / most]);
    }
    const auto met = scale_rows(multiply(gather_rows(a, std::span<const int>(token)), matmul(w, b)), real);
    const auto whole = reshape(met, most * E);
    const auto sum = add(slice_columns(whole, 0, E), add(slice_columns(whole, E, E), slice_columns(whole, 2 * E, E)));
    episode.cost(i.rows, square(subtract(out(tanh(sum)), after(i, constant_of(episode.tape(), batch, "y")))));
  }
};

/// Checks that the exact gradient is that of its value, and the mean of these estimators.
void check(Program& model, const Batch& batch, std::initializer_list<const char*> estimators) {
  for (const Target target : {"expected_loss", "marginal_likelihood", "soft"})
    CHECK(largest_difference(exact_reference(target, model, batch, 1e6).gradient, finite_differences(target, model, batch)) <
          1e-7);
  std::size_t visited = 0;
  for (const auto* spec : estimators) {
    CAPTURE(spec);
    auto estimator = estimator_of(spec, model);
    perturb_state(*estimator);
    CHECK(bias_of(*estimator, model, batch) < 1e-9);
    ++visited;
  }
  CHECK(visited == estimators.size());
}

TEST_CASE("a programmer: an operation and a column at each of two steps are 900 programs") {
  Programmer model;
  const auto batch = examples(1, Programmer::H, Programmer::H);
  CHECK(model.declared.dependence() == "sequential");
  CHECK(model.outcomes(batch)[0] == 900);
  CHECK(Drawn("exact", model, batch).estimate.rows() == 30 + 900);
  check(model, batch, {"reinforce", "local_expectation", "self_critic", "muprop"});
}

TEST_CASE("a Turing machine: a reading and a writing head, rows with different numbers of cells") {
  TuringMachine model;
  const auto batch = examples(2, TuringMachine::H, TuringMachine::H);
  CHECK(model.outcomes(batch) == std::vector<double>{16, 81});
  check(model, batch, {"reinforce", "disarm_tree", "disarm_stick", "local_expectation", "self_critic"});
  const auto one = examples(1, TuringMachine::H, TuringMachine::H);
  check(model, one,
        {"rloo[samples=2]", "double_cv[samples=2,alpha=0.2]", "unordered_set[samples=3]", "sum_and_sample[samples=3]"});
}

TEST_CASE("a ponderer: the number of questions depends on the choices") {
  Ponderer model;
  const auto batch = examples(2, Ponderer::H, 1);
  CHECK(model.outcomes(batch) == std::vector<double>{4, 4});
  CHECK(Drawn("exact", model, batch).estimate.rows() == 2 * (2 + 3 + 4));
  check(model, batch, {"reinforce", "local_expectation", "self_critic", "muprop", "disarm_tree", "disarm", "mvd"});
  const auto one = examples(1, Ponderer::H, 1);
  check(model, one,
        {"local_expectation[samples=2]", "rloo[samples=2]", "double_cv[samples=2,alpha=0.2]", "unordered_set[samples=3]",
         "sum_and_sample[samples=3]", "arms[samples=2]", "optimal_baseline"});
}

TEST_CASE("a belief network: a column for each unit of a layer, one row for each sample of all of them") {
  BeliefNetwork model(2);
  const auto batch = examples(1, 1, 2);
  CHECK(model.outcomes(batch)[0] == 16);
  check(model, batch,
        {"reinforce", "rloo[samples=2]", "disarm", "arms[samples=2]", "mvd", "local_expectation", "muprop",
         "double_cv[samples=2,alpha=0.2]", "rodeo[samples=2,hidden=3,alpha=0.2,beta=0.3]", "unordered_set[samples=3]"});
  BeliefNetwork large(200);
  const Drawn drawn("rloo[samples=2]", large, examples(50, 1, 2));
  const auto& estimate = drawn.estimate;
  CHECK(estimate.rows() == 2 * 50 * 2);  // a row for each sample at each layer: one product
}

TEST_CASE("a sentence pair: a partner for every token, ragged, with one joint cost") {
  SentencePair model;
  const auto batch = examples(3, 1, 1);
  CHECK(model.declared.dependence() == "joint cost");
  CHECK(model.outcomes(batch) == std::vector<double>{3, 4, 27});
  check(model, batch, {"reinforce", "local_expectation", "disarm_tree", "disarm_stick", "muprop", "exact"});
}

}  // namespace
}  // namespace hardgrad::testing::programs_test
