// A network that learns how long to think: it may halt after every inner step, and answers from its state at that step.
//
// Input x [I], labels a_1..a_P of C classes each, inner steps n = 1..N.
//   s_n  = LSTM(x, s_{n-1})
//   u_n  = w_h . s_n + b_h                                                       the halting unit
//   lambda_n, the probability of halting at step n once it is reached:
//     law=geometric (Banino et al. 2021): lambda_n = sig(u_n), lambda_N = 1
//     law=act (Graves 2016):              lambda_n = sig(u_n) / r_{n-1} with r_n = 1 - sum_{m<=n} sig(u_m), lambda_K = 1 at the
//                                         first step K with r_K <= epsilon, or N. So p_n = sig(u_n) below K, and p_K is the rest
//   p_n  = lambda_n prod_{m<n} (1 - lambda_m)                                    distribution of the halting step
//   ask=bits: z_n ~ Bernoulli(1 - lambda_n), n < N: halt (0) or go on (1)        the choices, site `halt`
//             w_n = (1 - z_n) z_{n-1} .. z_1
//   ask=step: n ~ p at once, w_n = 1 there                                       the choice, site `stop`
//   s    = sum_n w_n s_n                                                         relaxed: a mixture
//   loss = - sum_i log softmax(W s + b)_i[a_i] + beta KL(p || geometric) + tau E
//
// first_flag=true: the input is [x; 1] at n = 1 and [x; 0] afterwards, so that a step knows whether it is the first (Graves
// 2016, sec. 2).
// law=geometric: E = sum_n n w_n, the number of steps. The geometric prior has rate `prior`; step N takes its remaining mass.
// With ask=bits each step n that is reached pays KL(lambda_n || prior). The mean of this sum under p is KL(p || geometric), so
// both settings of `site` have the same expected loss. Their bounds differ: a posterior reaches other steps, and a bound is not
// linear in the costs.
// law=act: E = K + p_K, the ponder cost; no divergence.
// With expected weights, law=act is Graves' deterministic network, and law=geometric is PonderNet with averaged states.
//
// Posterior (if asked for), with v_n = w_q . [s_n; one-hot labels] + b_q and the prior's last step K:
//   law=geometric: lambda_n = sig(v_n) below N
//   law=act:       lambda_n = sig(v_n) / (sig(v_n) + r_n), r_n = max(r_{n-1} - sig(v_n), epsilon), below K
//   lambda_K = 1. Its support is that of p: every step at which p may halt.
//
// Predictions: a_1..a_P, then the mean number of steps sum_n n p_n, in thousandths.
//
// Parameters (H = hidden; first_flag: I + 1 for I): core.{input.weight [4H, I], recurrent.weight [4H, H], bias [4H]};
//   halt.{weight [1, H], bias [1]}; answer.{weight [P C, H], bias [P C]}; posterior.halt.{weight [1, H + P C], bias [1]}.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/halting.hpp"
#include "core/models/parts/replicates.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::ponderer {
namespace {

template <class T>
Var<T> on(const std::vector<int>& row, Var<T> x) {
  return gather_rows(x, std::span<const int>(row));
}

template <class T>
class Ponderer final : public Model<T> {
 public:
  explicit Ponderer(const Blueprint& b)
      : most_(b.settings.integer("steps")),
        positions_(b.dimensions.at("positions")),
        classes_(b.dimensions.at("labels")),
        act_(b.settings.text("law") == "act"),
        first_flag_(b.settings.flag("first_flag")),
        at_once_(b.settings.text("ask") == "step"),
        epsilon_(b.settings.real("epsilon")),
        prior_(b.settings.real("prior")),
        beta_(b.settings.real("beta")),
        tau_(b.settings.real("tau")) {
    auto& set = this->parameters_;
    const auto& [settings, dimensions, init, posterior] = b;
    const std::size_t H = settings.integer("hidden"), answers = positions_ * classes_;
    core_ = {set, "core", static_cast<std::size_t>(dimensions.at("puzzle_width") + first_flag_), H, init};
    halt_ = {set, "halt", H, 1, init};
    answer_ = {set, "answer", H, answers, init};
    if (posterior) posterior_ = {set, "posterior.halt", H + answers, 1, init};
    structure_.sites = {{.name = at_once_ ? "stop" : "halt",
                         .options = at_once_ ? most_ : 2,
                         .times = at_once_ ? 1 : most_ - 1,
                         .state_width = static_cast<int>(H),
                         .reach = at_once_ ? Reach::own_costs : Reach::later_choices}};
    structure_.posterior = posterior;
  }

  const Structure& structure() const override { return structure_; }
  /// N outcomes with either `site`: after halting there are no more choices.
  typename Model<T>::Asked asked(const Batch&, std::size_t, int) const override { return {{most_}, 1}; }
  void run(const Batch& batch, Episode<T>& episode) const override;

 private:
  // Values that depend on no choice, for the distinct examples [D].
  struct Thought {
    std::vector<Var<T>> s;         // N of [D, H]
    HaltingLaw<T> law, posterior;  // posterior: if asked for
  };
  struct Run {
    Episode<T>& episode;
    const Distinct& distinct;
    Thought x;
    /// The distinct example of each row.
    std::vector<int> example(const RowsPtr& rows) const {
      std::vector<int> all;
      for (int b : rows->example) all.push_back(distinct.index[b]);
      return all;
    }
    void pay(const RowsPtr& rows, double weight, Var<T> cost) const {
      if (weight != 0) episode.cost(rows, affine(cost, static_cast<T>(weight)));
    }
  };
  struct Halted {
    RowsPtr rows;
    Var<T> s;  // [R, H]
  };
  Thought think(Tape<T>& tape, const Batch& data) const;
  Halted stop(const Run& run) const;
  Halted halt_or_go_on(const Run& run) const;
  /// Pays - sum_i log softmax(W s + b)_i[a_i] on the rows, which belong to these distinct examples.
  void answer(Episode<T>& episode, const RowsPtr& rows, const std::vector<int>& example, Var<T> s,
              const std::vector<int>& label) const;
  /// One-hot labels [examples, P C]; zeros for a missing label.
  Var<T> one_hot(Tape<T>& tape, const std::vector<int>& example, const std::vector<int>& label) const;
  /// The numbers as each of `rows` rows.
  Var<T> constant(Tape<T>& tape, std::size_t rows, const std::vector<double>& numbers) const {
    const auto all = tape.constant(rows, numbers.size());
    for (std::size_t i = 0; i < rows * numbers.size(); ++i)
      tape.mutable_value(all).data[i] = static_cast<T>(numbers[i % numbers.size()]);
    return all;
  }

  Structure structure_;
  int most_;  // N
  std::size_t positions_, classes_;
  bool act_, first_flag_, at_once_;
  double epsilon_, prior_, beta_, tau_;
  Lstm<T> core_;
  Linear<T> halt_, answer_, posterior_;
};

template <class T>
void Ponderer<T>::run(const Batch& batch, Episode<T>& episode) const {
  const Distinct distinct(batch);
  const Run run{episode, distinct, think(episode.tape(), distinct.batch())};
  if (act_) run.pay(episode.root(), tau_, on(run.example(episode.root()), run.x.law.ponder_cost()));
  const auto [rows, s] = at_once_ ? stop(run) : halt_or_go_on(run);
  const auto example = run.example(rows);
  answer(episode, rows, example, s, distinct.batch().ints("label").data);
  std::vector<int> thousandths;  // 1000 sum_n n p_n
  thousandths.reserve(example.size());
  const auto steps = run.x.law.mean_steps();
  for (int d : example) thousandths.push_back(static_cast<int>(std::lround(1000 * steps[d])));
  episode.predict(rows, std::move(thousandths));
}

// n ~ p, s = s_n
template <class T>
auto Ponderer<T>::stop(const Run& run) const -> Halted {
  const auto& [episode, distinct, x] = run;
  auto& tape = episode.tape();
  const auto root = episode.root();
  const auto example = run.example(root);
  const auto log_p = x.law.log_p();
  if (!act_) {  // beta KL(p || geometric)
    std::vector<double> geometric;
    geometric.reserve(most_);
    for (int n = 0; n < most_; ++n) geometric.push_back(n * std::log1p(-prior_) + (n + 1 < most_ ? std::log(prior_) : 0));
    run.pay(root, beta_, on(example, kl_divergence(log_p, constant(tape, distinct.size(), geometric))));
  }
  std::vector<int> options;
  options.reserve(example.size());
  for (int d : example) options.push_back(x.law.end()[d] + 1);
  const auto prior = normalised(on(example, log_p), options);
  Site<T> site{.name = "stop", .rows = root, .prior = prior, .state = on(example, x.s[0])};
  if (structure_.posterior) site.posterior = [&, &x = x] { return normalised(on(example, x.posterior.log_p()), options); };
  const auto n = episode.choose(std::move(site));

  const auto w = n.one_hot(tape, most_);
  const auto whose = run.example(n.rows);
  Var<T> s;
  for (int k = 0; k < most_; ++k) {  // sum_n w_n s_n
    const auto part = scale_rows(on(whose, x.s[k]), slice_columns(w, k, 1));
    s = k == 0 ? part : add(s, part);
  }
  std::vector<double> steps(most_);
  std::iota(steps.begin(), steps.end(), 1);
  if (!act_) run.pay(n.rows, tau_, row_sums(multiply(w, constant(tape, w.rows(), steps))));  // tau n
  return {n.rows, s};
}

// z_n ~ Bernoulli(1 - lambda_n) until the first 0, s = s_n
template <class T>
auto Ponderer<T>::halt_or_go_on(const Run& run) const -> Halted {
  const auto& [episode, distinct, x] = run;
  auto& tape = episode.tape();
  auto rows = episode.root();
  std::vector<char> asked(rows->size(), 1);           // rows that have not halted
  auto reach = tape.constant(rows->size(), 1, T{1});  // z_1 .. z_{n-1}
  auto s = tape.constant(rows->size(), x.s[0].cols());
  for (int n = 0; n + 1 < most_; ++n) {
    const auto example = run.example(rows);
    std::vector<int> options;
    for (std::size_t r = 0; r < rows->size(); ++r) options.push_back(asked[r] ? x.law.options(n)[example[r]] : 1);
    const auto prior = categorical(on(example, x.law.logits(n)), options);
    if (!act_) {  // tau + beta KL(lambda_n || prior), on the rows that reach step n
      const auto rate = constant(tape, rows->size(), {std::log(prior_), std::log1p(-prior_)});
      const std::vector<int> both(rows->size(), 2);
      const auto halting = log_softmax(prior->logits(), std::span<const int>(both));
      run.pay(rows, tau_, reach);
      run.pay(rows, beta_, multiply(kl_divergence(halting, rate), reach));
    }
    Site<T> site{.name = "halt", .rows = rows, .prior = prior, .state = on(example, x.s[n])};
    if (structure_.posterior) site.posterior = [&, &x = x] { return prior->with(on(example, x.posterior.logits(n))); };
    const auto z = episode.choose(std::move(site));

    const auto& parent = z.rows->parent;
    const auto w = z.one_hot(tape, 2), before = on(parent, reach);
    s = add(on(parent, s), scale_rows(on(run.example(z.rows), x.s[n]), multiply(before, slice_columns(w, 0, 1))));
    reach = multiply(before, slice_columns(w, 1, 1));
    std::vector<char> next(parent.size());
    for (std::size_t r = 0; r < next.size(); ++r) next[r] = options[parent[r]] > 1 && (!z.hard() || z.option()[r] == 1);
    asked = std::move(next);
    rows = z.rows;
  }
  if (!act_) run.pay(rows, tau_, reach);
  return {rows, add(s, scale_rows(on(run.example(rows), x.s[most_ - 1]), reach))};
}

template <class T>
auto Ponderer<T>::think(Tape<T>& tape, const Batch& data) const -> Thought {
  Thought x;
  const auto plain = constant_of(tape, data, "x"), recurrent = tape.parameter(*core_.recurrent);
  const auto projected = [&](T flag) {
    return core_.project(first_flag_ ? concat_columns({plain, tape.constant(plain.rows(), 1, flag)}) : plain);
  };
  const auto later = projected(T{0}), first = first_flag_ ? projected(T{1}) : later;
  std::vector<int> each(data.examples());
  std::iota(each.begin(), each.end(), 0);
  const auto hints = structure_.posterior ? one_hot(tape, each, data.ints("label").data) : Var<T>{};
  auto state = core_.zero(tape, data.examples());
  std::vector<Var<T>> u, v;
  for (int n = 0; n < most_; ++n) {
    state = lstm_cell(add(n == 0 ? first : later, linear(state.h, recurrent)), state.c);  // s_n
    x.s.push_back(state.h);
    u.push_back(halt_(state.h));
    if (hints) v.push_back(posterior_(concat_columns({state.h, hints})));
  }
  const auto epsilon = act_ ? std::optional(epsilon_) : std::nullopt;
  x.law = {u, epsilon};
  if (hints) x.posterior = {v, epsilon, &x.law};
  return x;
}

template <class T>
void Ponderer<T>::answer(Episode<T>& episode, const RowsPtr& rows, const std::vector<int>& example, Var<T> s,
                         const std::vector<int>& label) const {
  auto& tape = episode.tape();
  const auto logits = reshape(answer_(s), classes_);  // [R P, C]
  const std::vector<int> every(logits.rows(), static_cast<int>(classes_));
  const auto log_p = reshape(log_softmax(logits, std::span<const int>(every)), positions_ * classes_);
  episode.cost(rows, affine(row_sums(multiply(log_p, one_hot(tape, example, label))), T{-1}));
  for (std::size_t i = 0; i < positions_; ++i) {
    std::vector<int> predicted;
    for (std::size_t r = 0; r < rows->size(); ++r) {
      const T* p = logits.value().row(r * positions_ + i);
      predicted.push_back(static_cast<int>(std::max_element(p, p + classes_) - p));
    }
    episode.predict(rows, std::move(predicted));
  }
}

template <class T>
Var<T> Ponderer<T>::one_hot(Tape<T>& tape, const std::vector<int>& example, const std::vector<int>& label) const {
  const auto all = tape.constant(example.size(), positions_ * classes_);
  for (std::size_t r = 0; r < example.size(); ++r)
    for (std::size_t i = 0; i < positions_; ++i)
      if (const int a = label[example[r] * positions_ + i]; a >= 0) tape.mutable_value(all)(r, i * classes_ + a) = 1;
  return all;
}

const ModelEntry entry = {
    .name = "ponderer",
    .summary = "recurrent network that learns when to halt its inner steps and answer",
    .paper = "Banino, Balaguer & Blundell 2021, PonderNet; Graves 2016, Adaptive computation time (law=act)",
    .dependence = "sequential, one choice (ask=step)",
    .kinds = "binary, categorical (ask=step)",
    .parameters =
        {ParameterInfo::integer("hidden", 64, 1, 4096, "units of the core"),
         ParameterInfo::integer("steps", 10, 2, 1000, "largest number N of inner steps"),
         ParameterInfo::choice("law", "geometric", {"geometric", "act"},
                               "halting unit: probability of halting at a step once it is reached, or in total (act)"),
         ParameterInfo::choice("ask", "bits", {"bits", "step"}, "choices: a bit after each step, or the last step at once"),
         ParameterInfo::flag("first_flag", false, "the input also tells whether the inner step is the first"),
         ParameterInfo::real("epsilon", 0.01, 0, 1, "law=act: it halts where at most this probability is left").above().below(),
         ParameterInfo::real("prior", 0.2, 0, 1, "rate of the geometric prior of the halting step (law=geometric)")
             .above()
             .below(),
         ParameterInfo::real("beta", 0.01, 0, 1e6, "weight of the divergence from this prior (law=geometric)"),
         ParameterInfo::real("tau", 0, 0, 1e6, "cost per step; law=act: weight of the ponder cost")},
    .needs = {"puzzle_width", "positions", "labels"},
};
HARDGRAD_MODEL(Ponderer, entry)

}  // namespace
}  // namespace hardgrad::models::ponderer
