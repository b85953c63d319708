// A network that learns how long to think: it may halt after every inner step, and answers from its state at that step.
//
// Input x [I] (or a sequence of them, see below), labels a_1..a_P of C classes each, inner steps n = 1..N.
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
//
// Sequences x_1..x_T (Graves 2016, sec. 2) with labels at each outer step t: the steps above for every x_t, with s_0 = 0 in the
// first outer step and the halted state (and LSTM cell) s of the last one in the others. The loss is the sum over t.
//
// With expected weights, law=act is Graves' deterministic network, and law=geometric is PonderNet with averaged states.
//
// Posterior (if asked for), with v_n = w_q . [s_n; one-hot labels] + b_q and the prior's last step K:
//   law=geometric: lambda_n = sig(v_n) below N
//   law=act:       lambda_n = sig(v_n) / (sig(v_n) + r_n), r_n = max(r_{n-1} - sig(v_n), epsilon), below K
//   lambda_K = 1. Its support is that of p: every step at which p may halt.
//
// Refused: with beta > 0 (law=geometric) or tau > 0 targets that need the likelihood of the labels.
//
// Predictions, at each outer step: a_1..a_P, then the mean number of steps sum_n n p_n, in thousandths.
//
// Parameters (H = hidden; first_flag: I + 1 for I): core.{input.weight [4H, I], recurrent.weight [4H, H], bias [4H]};
//   halt.{weight [1, H], bias [1]}; answer.{weight [P C, H], bias [P C]}; posterior.halt.{weight [1, H + P C], bias [1]}.
#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/states.hpp"
#include "core/models/ponderer/thought.hpp"

namespace hardgrad::models::ponderer {
namespace {

template <class T>
Var<T> on(const std::vector<int>& row, Var<T> x) {
  return gather_rows(x, std::span<const int>(row));
}

template <class T>
class Ponderer final : public Model<T> {
 public:
  Ponderer(const Config& config, const Blueprint& b)
      : most_(config.steps),
        longest_(b.dimensions.contains("puzzle_steps") ? b.dimensions.at("puzzle_steps") : 1),
        positions_(b.dimensions.at("positions")),
        classes_(b.dimensions.at("labels")),
        law_(config.law),
        ask_(config.ask),
        prior_(config.prior),
        beta_(config.beta),
        tau_(config.tau) {
    auto& set = this->parameters_;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    const std::size_t H = config.hidden, answers = positions_ * classes_;
    think_ = {set, config, b};
    answer_ = {set, "answer", H, answers, init};
    if (posterior) think_.add_posterior(set, answers, init);
    structure_.sites = {
        {.name = ask_ == Ask::step ? "stop" : "halt",
         .options = ask_ == Ask::step ? most_ : 2,
         .times = longest_ * (ask_ == Ask::step ? 1 : most_ - 1),
         .state_width = static_cast<int>(H),
         .scope = ask_ == Ask::step && longest_ == 1 ? DependenceScope::own_costs : DependenceScope::later_choices}};
    structure_.posterior = posterior;
    if (tau_ > 0 || (beta_ > 0 && law_ == HaltingKind::geometric))
      structure_.no_likelihood = law_ == HaltingKind::act ? "tau above 0" : "beta or tau above 0";
  }

  const Structure& structure() const override { return structure_; }
  /// N outcomes of each outer step with either `site`: after halting it has no more choices.
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t, int example) const override {
    return {{most_}, lengths(batch)[example]};
  }
  void run(const Batch& batch, Episode<T>& episode) const override;

 private:
  // The states after halting: the Thought's state of each, and w [K, N].
  struct Halted {
    States<T> states;
    std::vector<int> from;
    Var<T> w;
  };
  /// [B] outer steps of each example.
  std::vector<int> lengths(const Batch& batch) const {
    return longest_ == 1 ? std::vector<int>(batch.examples(), 1) : batch.ints("length").storage();
  }
  /// The inner steps of outer step t.
  Thought<T> think(Tape<T>& tape, const States<T>& states, const Batch& data, int t, const LstmState<T>& before) const;
  Halted stop(const States<T>& states, const Thought<T>& x, const Items& steps) const;
  Halted halt_or_go_on(const States<T>& states, const Thought<T>& x, const Items& both) const;
  /// Pays - sum_i log softmax(W s + b)_i[a_i] of step t.
  void answer(const States<T>& states, const Batch& data, int t, Var<T> s) const;
  /// One-hot labels of step t [M, P C]; zeros for a missing label.
  Var<T> one_hot(const States<T>& states, Tape<T>& tape, const Batch& data, int t) const;
  static void pay(const States<T>& states, double weight, Var<T> cost) {
    if (weight != 0) states.cost(affine(cost, static_cast<T>(weight)));
  }
  /// The numbers as each of `rows` rows.
  Var<T> constant(Tape<T>& tape, std::size_t rows, const std::vector<double>& numbers) const {
    const auto all = tape.constant(rows, numbers.size());
    for (std::size_t i = 0; i < rows * numbers.size(); ++i)
      tape.mutable_value(all).data[i] = static_cast<T>(numbers[i % numbers.size()]);
    return all;
  }

  Structure structure_;
  int most_, longest_;  // N, T
  std::size_t positions_, classes_;
  HaltingKind law_;
  Ask ask_;
  double prior_, beta_, tau_;
  Thinker<T> think_;
  Linear<T> answer_;
};

template <class T>
void Ponderer<T>::run(const Batch& batch, Episode<T>& episode) const {
  const Distinct distinct(batch);
  const auto& data = distinct.batch();
  const auto length = lengths(data);
  const Items options(distinct.size(), ask_ == Ask::step ? most_ : 2);
  States<T> states(episode, distinct);
  LstmState<T> s;  // 0
  for (int t = 0; states.size() > 0; ++t) {
    const auto x = think(episode.tape(), states, data, t, s);
    if (law_ == HaltingKind::act) pay(states, tau_, x.law.ponder_cost());
    auto halted = ask_ == Ask::step ? stop(states, x, options) : halt_or_go_on(states, x, options);
    const auto h = x.mean(halted.w, halted.from, x.s.h);
    answer(halted.states, data, t, h);
    const auto steps = x.law.mean_steps();
    std::vector<int> thousandths;  // 1000 sum_n n p_n
    for (int m : halted.from) thousandths.push_back(static_cast<int>(std::lround(1000 * steps[m])));
    halted.states.predict(thousandths);
    if (t + 1 == longest_) break;
    states = halted.states.next_step().only([&](int b) { return length[b] > t + 1; });
    s = {states.after(h), states.after(x.mean(halted.w, halted.from, x.s.c))};
  }
}

template <class T>
Thought<T> Ponderer<T>::think(Tape<T>& tape, const States<T>& states, const Batch& data, int t,
                              const LstmState<T>& before) const {
  const auto& field = data.numbers("x");  // [B, I] or [B, T, I]
  const auto I = extent(field, field.dimension() - 1);
  const auto x = tape.constant(states.size(), I);
  for (std::size_t m = 0; m < states.size(); ++m) {
    const auto from = row_of(field, states.example()[m]).subspan(t * I, I);
    std::transform(from.begin(), from.end(), tape.mutable_value(x).row(m), [](double v) { return static_cast<T>(v); });
  }
  return think_(x, before, structure_.posterior ? one_hot(states, tape, data, t) : Var<T>{});
}

// n ~ p, s = s_n
template <class T>
auto Ponderer<T>::stop(const States<T>& states, const Thought<T>& x, const Items& steps) const -> Halted {
  const auto log_p = x.law.log_p();
  auto& tape = *log_p.tape;
  if (law_ == HaltingKind::geometric) {  // beta KL(p || geometric)
    std::vector<double> geometric;
    for (int n = 0; n < most_; ++n) geometric.push_back(n * std::log1p(-prior_) + (n + 1 < most_ ? std::log(prior_) : 0));
    pay(states, beta_, kl_divergence(log_p, constant(tape, states.size(), geometric)));
  }
  ItemSite<T> site{.name = "stop", .logits = log_p, .items = steps, .state = on(x.at(0, range(states.size())), x.s.h)};
  for (int end : x.law.end()) site.options.push_back(end + 1);
  if (structure_.posterior) site.posterior = [&] { return x.posterior.log_p(); };
  const auto n = states.choose(site);

  const auto w = n.weights();
  std::vector<double> count;
  for (int step = 1; step <= most_; ++step) count.push_back(step);
  if (law_ == HaltingKind::geometric) pay(n, tau_, row_sums(multiply(w, constant(tape, w.rows(), count))));  // tau n
  const auto& from = n.histories().parent;
  return {n, from, w};
}

// z_n ~ Bernoulli(1 - lambda_n) until the first 0, s = s_n
template <class T>
auto Ponderer<T>::halt_or_go_on(const States<T>& before, const Thought<T>& x, const Items& both) const -> Halted {
  auto& tape = *x.s.h.tape;
  auto states = before.next_step();
  auto from = range(states.size());                    // the state of x
  std::vector<char> asked(states.size(), 1);           // states that have not halted
  auto reach = tape.constant(states.size(), 1, T{1});  // z_1 .. z_{n-1}
  std::vector<Var<T>> halts;                           // w_n, of the states after choice n
  std::vector<std::vector<int>> place;                 // the present states' rows of each w_n
  Var<T> divergence;                                   // KL(lambda_n || prior) of every inner step [M N, 1]
  if (law_ == HaltingKind::geometric) {
    const auto rate = constant(tape, x.s.h.rows(), {std::log(prior_), std::log1p(-prior_)});
    divergence = kl_divergence(x.law.log_lambda(), rate);
  }
  for (int n = 0; n + 1 < most_; ++n) {
    const auto at = x.at(n, from);
    ItemSite<T> site{.name = "halt", .logits = on(at, x.law.logits()), .items = both, .state = on(at, x.s.h)};
    for (std::size_t m = 0; m < from.size(); ++m) site.options.push_back(asked[m] && n < x.law.end()[from[m]] ? 2 : 1);
    if (law_ == HaltingKind::geometric) {  // tau + beta KL(lambda_n || prior), of the states that reach step n
      pay(states, tau_, reach);
      pay(states, beta_, multiply(on(at, divergence), reach));
    }
    if (structure_.posterior) site.posterior = [&] { return on(at, x.posterior.logits()); };
    const auto z = states.choose(site);

    const auto w = z.weights();
    const auto& parent = z.histories().parent;
    const Var<T> reached = z.after(reach);
    halts.push_back(multiply(reached, slice_columns(w, 0, 1)));
    reach = multiply(reached, slice_columns(w, 1, 1));
    std::vector<char> next;
    for (std::size_t m = 0; m < parent.size(); ++m) next.push_back(site.options[parent[m]] > 1 && reach.value().data[m] > 0);
    for (auto& rows : place) rows = taken(rows, parent);
    place.push_back(range(parent.size()));
    from = taken(from, parent);
    asked = std::move(next);
    states = z.next_step();
  }
  if (law_ == HaltingKind::geometric) pay(states, tau_, reach);
  halts.push_back(reach);
  place.push_back(range(from.size()));
  std::vector<int> row;  // of w_n for each state, in the stack of all w_n
  for (std::size_t m = 0; m < from.size(); ++m)
    for (std::size_t n = 0, before = 0; n < halts.size(); before += halts[n++].rows())
      row.push_back(static_cast<int>(before) + place[n][m]);
  const auto w = gather_rows(std::span<const Var<T>>(halts), std::span<const int>(row));
  return {states, std::move(from), reshape(w, most_)};
}

template <class T>
void Ponderer<T>::answer(const States<T>& states, const Batch& data, int t, Var<T> s) const {
  const auto logits = reshape(answer_(s), classes_);  // [N P, C]
  const std::vector<int> every(logits.rows(), static_cast<int>(classes_));
  const auto log_p = reshape(log_softmax(logits, std::span<const int>(every)), positions_ * classes_);
  states.cost(affine(row_sums(multiply(log_p, one_hot(states, *s.tape, data, t))), T{-1}));
  for (std::size_t i = 0; i < positions_; ++i) {
    std::vector<int> predicted;
    for (std::size_t n = 0; n < states.size(); ++n) {
      const T* p = logits.value().row(n * positions_ + i);
      predicted.push_back(static_cast<int>(std::max_element(p, p + classes_) - p));
    }
    states.predict(predicted);
  }
}

template <class T>
Var<T> Ponderer<T>::one_hot(const States<T>& states, Tape<T>& tape, const Batch& data, int t) const {
  const auto all = tape.constant(states.size(), positions_ * classes_);
  for (std::size_t n = 0; n < states.size(); ++n)
    for (std::size_t i = 0; i < positions_; ++i)
      if (const int a = row_of(data.ints("label"), states.example()[n])[t * positions_ + i]; a >= 0)
        tape.mutable_value(all)(n, i * classes_ + a) = 1;
  return all;
}

const ModelEntry entry = {
    .name = "ponderer",
    .summary = "recurrent network that learns when to halt its inner steps and answer",
    .paper = "Banino, Balaguer & Blundell 2021, PonderNet; Graves 2016, Adaptive computation time (law=act)",
    .dependence = "sequential, one choice (ask=step, one input)",
    .kinds = "binary, categorical (ask=step)",
    .parameters = declared<Config>(),
    .needs = {"puzzle_width", "positions", "labels"},
};
HARDGRAD_MODEL(Ponderer, entry)

}  // namespace
}  // namespace hardgrad::models::ponderer
