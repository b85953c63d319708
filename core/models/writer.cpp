// A writer: a policy that writes a sequence of words, one choice each, and is rewarded for the whole.
//
// Prompt x_1..x_n of symbols; V words and an end mark (option V); at most L words, t = 1..L.
//   policy=gru    h_i = GRU(P[x_i], h_{i-1}), h_0 = 0;  s_1 = h_n, s_{t+1} = GRU(E[y_t], s_t);  logits_t = W s_t + b
//   policy=attention  s_t: the newest of the tokens P[x_1] + place_0, .., P[x_n] + place_(n-1), E[start] + place_0,
//                 E[y_1] + place_1, .. reads them all (parts/causal_attention.hpp);  logits_t = W s_t + b. The prompt and the
//                 words count their places each from 0; place_i [H] has sin(i / 10000^(2 j / H)) in entry 2 j and the cosine of
//                 the same angle in entry 2 j + 1
//   policy=table  logits_t = the row of a table for the words y_1 .. y_{t-1}: one free vector for each prefix
//   y_t ~ softmax(logits_t)                                   the choice, site `word`, until the end mark or t = L
//   loss = - reward(y_1, y_2, ..)
//
// The task gives one of
//   the reward of every sequence (field "rewards", numbered as in parts/sequence_rewards.hpp)
//   numbers and a target (field "wanted"): 1 for an expression of these numbers with this value (core/support/text_metrics.hpp)
//   the right answer a_1 .. a_m (field "answer", -1 pads), with a_{m+1} = the end mark if m < L, and the setting `reward`:
//     exact  1 if the sequence is right, else 0
//     share  share of the m + 1 (or L) steps t with y_t = a_t, paid step by step
//     bleu, chrf, edit, f1  likeness of the words before the end mark (parts/metric_rewards.hpp)
// Refused: a table of too many prefixes; targets that need the likelihood of an answer, since losses are rewards.
// Relaxed words are mixtures: E[y_t] is a mean of rows, and rewards of tables, `exact` and `share` are multilinear in weights.
//
// Other policies, without gradients, for estimators that need them:
//   behaviour     theta + drift delta, where delta is a second draw of the initial parameters: the policy of some updates ago
//   reference     initial: theta_0 + away delta' with the initial parameters theta_0 and a third draw delta'. uniform: all
//                 options equally likely
//
// Predictions: y_1, y_2, .. (the end mark is V).
//
// Parameters (Q symbols, E = embedding, H = hidden, N prefixes of less than L words): policy=gru: prompt.weight [Q, E] (if the
//   task has prompts), word.weight [V, E], core.{input.weight [3H, E], input.bias [3H], recurrent.weight [3H, H],
//   recurrent.bias [3H]}, output.{weight [V + 1, H], bias [V + 1]}. policy=attention: prompt.weight [Q, H], word.weight
//   [V + 1, H], the last row for the start, core.{query,key,value}.weight [H, H], core.{inner,outer}.{weight [H, H], bias [H]},
//   output as before. policy=table: table.logits [N, V + 1], normal.
#include <fmt/format.h>

#include <memory>
#include <numeric>

#include "core/autodiff/recurrent_cells.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/causal_attention.hpp"
#include "core/models/parts/metric_rewards.hpp"
#include "core/models/parts/word_choices.hpp"
#include "core/nn/layers.hpp"
#include "core/support/text_metrics.hpp"

namespace hardgrad::models::writer {
namespace {

constexpr double most_prefixes = 4096;  // of a table

/// A policy's parameters on a tape, in the order of their set.
template <class T>
struct Weights {
  Var<T> prompt, word, output, output_bias;             // policy=gru and attention
  Var<T> input, input_bias, recurrent, recurrent_bias;  // policy=gru
  CausalAttention<T> attention;                         // policy=attention
  Var<T> table;                                         // policy=table
  /// GRU(x, h), for x W' + b of its inputs; with `index` [R], of a table from which each line takes a row
  Var<T> step(Var<T> projected, Var<T> h, std::span<const int> index = {}) const {
    return gru_cell(projected, linear(h, recurrent, recurrent_bias), h, index);
  }
  Var<T> project(Var<T> x) const { return linear(x, input, input_bias); }
};

enum class PolicyKind { gru, attention, table };
constexpr Named<PolicyKind> policy_kinds[] = {
    {"gru", PolicyKind::gru}, {"attention", PolicyKind::attention}, {"table", PolicyKind::table}};

enum class Reference { none, uniform, initial };
constexpr Named<Reference> references[] = {
    {"none", Reference::none}, {"uniform", Reference::uniform}, {"initial", Reference::initial}};

struct Config {
  PolicyKind policy = PolicyKind::gru;
  int hidden = 32, embedding = 16;
  double scale = 1;
  const Reward* reward = &exact_reward;
  double drift = 0;
  Reference reference = Reference::none;
  double away = 0;

  void declare(Fields& field) {
    field(policy, "policy", policy_kinds, "a recurrent network, a causal layer of attention, or free logits for each prefix");
    field(hidden, "hidden", 1, 4096, "units of the GRU; width of attention");
    field(embedding, "embedding", 1, 4096, "policy=gru: width of symbols and words");
    field(scale, "scale", 0, 1e3, "standard deviation of the initial logits of policy=table");
    reward_field(field, reward, "of tasks with a right answer");
    field(drift, "drift", 0, 1e3, "distance of the behaviour policy, in standard deviations of the initial parameters");
    field(reference, "reference", references, "the reference policy");
    field(away, "away", 0, 1e3, "distance of reference=initial from the start, in the same units");
  }
};

template <class T>
class Writer final : public Model<T> {
 public:
  Writer(const Config& config, const Blueprint& b)
      : numbers_{static_cast<std::size_t>(b.dimensions.at("words")), b.dimensions.at("longest")},
        config_(config),
        tabled_(b.dimensions.contains("reward_table")),
        expressions_(b.dimensions.contains("expressions")),
        prompted_(b.dimensions.contains("prompt_symbols")) {
    const auto& init = b.init;
    if (const double rows = numbers_.count(numbers_.longest - 1); config_.policy == PolicyKind::table && rows > most_prefixes)
      throw UsageError(
          fmt::format("writer: policy=table has a row for each prefix, at most {:.0f}, but there are {:.6g}: take "
                      "fewer words, shorter sequences, or policy=gru",
                      most_prefixes, rows));
    width_ = config_.policy == PolicyKind::table ? 1 : config.hidden;
    add_parameters(this->parameters_, b, init);
    if (config_.drift > 0) add_parameters(delta_, b, init / "behaviour");
    if (config_.reference == Reference::initial) add_parameters(initial_, b, init);
    if (config_.reference == Reference::initial && config_.away > 0) add_parameters(away_by_, b, init / "reference");
    structure_.sites = {word_site(static_cast<int>(options()), numbers_.longest, static_cast<int>(width_),
                                  tabled_ ? exact_reward : *config_.reward)};
    if (expressions_) structure_.sites[0].kind.relaxable = false;
    structure_.no_posterior = "its words are the answer";
    structure_.behaviour = config_.drift > 0;
    structure_.reference = config_.reference != Reference::none;
    structure_.no_likelihood = rewards_as_losses;
    structure_.rewards = !tabled_ || b.dimensions.contains("rewards_from_0");
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::SiteExtent site_extent(const Batch&, std::size_t site, int) const override {
    return extent_of_words<T>(structure_, site, 1);
  }
  /// The parameters of the other policies: of behaviour their distance delta, of reference theta_0 and delta'.
  std::vector<std::pair<std::string, Array<double>>> constants() const override {
    std::vector<std::pair<std::string, Array<double>>> all;
    const auto add = [&](const std::string& whose, const ParameterSet<T>& set) {
      for (const auto& p : set) all.push_back({whose + p.name, p.value});
    };
    add("behaviour.", delta_);
    add("initial.", initial_);
    add("away.", away_by_);
    return all;
  }
  void run(const Batch& batch, Episode<T>& episode) const override;

 private:
  std::size_t options() const { return numbers_.words + 1; }
  void add_parameters(ParameterSet<T>& set, const Blueprint& b, Key init) const;
  /// The parameters of a set as made by `value`, for each of them.
  template <class F>
  Weights<T> weights(const ParameterSet<T>& set, F value) const;
  /// A policy in n states: its parameters and its own values.
  struct Policy {
    Weights<T> of;
    Var<T> s;           // [n, H]; policy=attention: the tokens; policy=table: the weights of the prefixes [n, V^(t-1)]
    Var<T> words = {};  // policy=gru: each word, projected to the gates [V, 3H]
  };
  Var<T> start(Tape<T>& tape, const Batch& data, const Weights<T>& of) const;
  Var<T> start_attending(Tape<T>& tape, const Batch& data, const Weights<T>& of) const;
  /// The words' state at step t [n, H]; policy=table: the policy's. length [n] of the prompts.
  Var<T> state(const Policy& policy, int t, std::span<const int> length) const;
  Var<T> logits(const Policy& policy, Var<T> state, int t) const;
  /// s after step t, for the `next` states: those after its choice i that write on.
  Var<T> after(const Policy& policy, const States<T>& i, const States<T>& next, int t) const;
  std::unique_ptr<SequenceRewards<T>> rewards(const Batch& data) const;

  Structure structure_;
  SequenceNumbers numbers_;
  Config config_;
  bool tabled_, expressions_, prompted_;
  std::size_t width_;
  ParameterSet<T> delta_, initial_, away_by_;
};

template <class T>
void Writer<T>::add_parameters(ParameterSet<T>& set, const Blueprint& b, Key init) const {
  if (config_.policy == PolicyKind::table) {
    normal_parameter(set, "table.logits", {numbers_.first(numbers_.longest), options()}, config_.scale, init);
    return;
  }
  const std::size_t H = config_.hidden, E = config_.policy == PolicyKind::attention ? H : config_.embedding;
  if (prompted_) Embedding<T>(set, "prompt", b.dimensions.at("prompt_symbols"), E, init, 1);
  Embedding<T>(set, "word", numbers_.words + (config_.policy == PolicyKind::attention ? 1 : 0), E, init, 1);
  if (config_.policy == PolicyKind::attention)
    CausalAttention<T>::add_parameters(set, "core", H, init);
  else
    Gru<T>(set, "core", E, H, init);
  Linear<T>(set, "output", H, options(), init);
}

template <class T>
template <class F>
Weights<T> Writer<T>::weights(const ParameterSet<T>& set, F value) const {
  auto each = set.begin();
  const auto next = [&] { return value(*each++); };
  Weights<T> of;
  if (config_.policy == PolicyKind::table) {
    of.table = next();
    return of;
  }
  if (prompted_) of.prompt = next();
  of.word = next();
  auto& attention = of.attention;
  const auto core = config_.policy == PolicyKind::attention
                        ? std::vector{&attention.query,      &attention.key,   &attention.value,     &attention.inner,
                                      &attention.inner_bias, &attention.outer, &attention.outer_bias}
                        : std::vector{&of.input, &of.input_bias, &of.recurrent, &of.recurrent_bias};
  for (auto* weight : core) *weight = next();
  of.output = next();
  of.output_bias = next();
  return of;
}

template <class T>
void Writer<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const auto& data = distinct.batch();
  const auto constant = [&](const Parameter<T>& p) { return tape.constant({p.value.data(), p.rows(), p.cols()}); };

  std::vector<Policy> policies;  // its own, then those of behaviour and reference, if any
  const auto add_policy = [&](const Weights<T>& of) {
    policies.push_back({of, start(tape, data, of)});
    if (config_.policy == PolicyKind::gru) policies.back().words = of.project(of.word);
  };
  add_policy(weights(this->parameters_, [&](const Parameter<T>& p) { return tape.parameter(p); }));
  // The values `at` of a set, and further ones times `by`.
  const auto displaced = [&](const ParameterSet<T>& further, double by, auto at) {
    auto next = further.begin();
    return [&constant, next, by, at](const Parameter<T>& p) mutable {
      return by > 0 ? add(at(p), affine(constant(*next++), static_cast<T>(by))) : at(p);
    };
  };
  if (config_.drift > 0)
    add_policy(weights(this->parameters_, displaced(delta_, config_.drift,
                                                    [&](const Parameter<T>& p) { return tape.detach(tape.parameter(p)); })));
  if (!initial_.empty()) add_policy(weights(initial_, displaced(away_by_, config_.away, constant)));

  WordChoices<T> words(tape, rewards(data), distinct.size(), options(), static_cast<int>(numbers_.words));
  States<T> states(episode, distinct);
  for (int t = 1; t <= numbers_.longest; ++t) {
    const auto length =
        states.each([&](int b) { return prompted_ ? static_cast<int>(answer_of(data.ints("prompt"), b).size()) : 0; });
    const auto logits_of = [&](const Policy& policy) { return logits(policy, state(policy, t, length), t); };
    const auto own = state(policies[0], t, length);
    ItemSite<T> site{.name = word_site_name,
                     .logits = logits(policies[0], own, t),
                     .items = words.items(),
                     .state = config_.policy == PolicyKind::table ? tape.constant(states.size(), 1, T{1}) : own};
    if (config_.drift > 0) site.behaviour = logits_of(policies[1]);
    if (!initial_.empty()) site.reference = logits_of(policies.back());
    if (config_.reference == Reference::uniform) site.reference = tape.constant(states.size(), options());
    const auto i = words.choose(t, states, site);  // y_t
    if (t == numbers_.longest) break;              // the last word leads nowhere
    states = words.go_on(i);
    for (auto& policy : policies) policy.s = after(policy, i, states, t);
  }
}

// Before the first word: h_n.
template <class T>
Var<T> Writer<T>::start(Tape<T>& tape, const Batch& data, const Weights<T>& of) const {
  const std::size_t B = data.examples();
  if (config_.policy == PolicyKind::table) return tape.constant(B, 1, T{1});
  if (config_.policy == PolicyKind::attention) return start_attending(tape, data, of);
  auto h = tape.constant(B, width_);
  if (!prompted_) return h;
  const auto& prompt = data.ints("prompt");
  const auto symbols = of.project(of.prompt);
  for (std::size_t i = 0; i < extent(prompt, 1); ++i) {
    std::vector<int> symbol(B);
    const auto reads = tape.constant(B, 1), waits = tape.constant(B, 1);
    bool all_read = true;
    for (std::size_t b = 0; b < B; ++b) {
      const int x = prompt(b, i);
      symbol[b] = std::max(x, 0);
      tape.mutable_value(x < 0 ? waits : reads)(b, 0) = 1;
      all_read &= x >= 0;
    }
    const auto next = of.step(symbols, h, symbol);
    h = all_read ? next : add(scale_rows(next, reads), scale_rows(h, waits));  // a prompt that has ended waits
  }
  return h;
}

// The tokens of the prompt, its last symbol first, so that padding comes last; then the start.
template <class T>
Var<T> Writer<T>::start_attending(Tape<T>& tape, const Batch& data, const Weights<T>& of) const {
  const std::size_t B = data.examples();
  auto tokens = of.attention.nothing(tape, B);
  if (prompted_) {
    const auto& prompt = data.ints("prompt");
    for (std::size_t i = extent(prompt, 1); i-- > 0;) {
      std::vector<int> symbol(B);
      for (std::size_t b = 0; b < B; ++b) symbol[b] = prompt(b, i);  // -1: zeros, which nothing reads
      tokens =
          of.attention.with(tokens, add_row(gather_rows(of.prompt, std::span<const int>(symbol)), place_row(tape, i, width_)));
    }
  }
  const std::vector<int> begin(B, static_cast<int>(numbers_.words));
  return of.attention.with(tokens, add_row(gather_rows(of.word, std::span<const int>(begin)), place_row(tape, 0, width_)));
}

template <class T>
Var<T> Writer<T>::state(const Policy& policy, int t, std::span<const int> length) const {
  if (config_.policy != PolicyKind::attention) return policy.s;
  std::vector<int> tokens;
  for (const int n : length) tokens.push_back(n + t);
  return policy.of.attention.read(policy.s, tokens);
}

template <class T>
Var<T> Writer<T>::logits(const Policy& policy, Var<T> state, int t) const {
  if (config_.policy != PolicyKind::table) return linear(state, policy.of.output, policy.of.output_bias);
  std::vector<int> rows(state.cols());
  std::iota(rows.begin(), rows.end(), static_cast<int>(numbers_.first(t - 1)));
  return matmul(state, gather_rows(policy.of.table, std::span<const int>(rows)));
}

template <class T>
Var<T> Writer<T>::after(const Policy& policy, const States<T>& i, const States<T>& next, int t) const {
  const auto of_next = [&](const std::vector<int>& of_i) {  // [N] of the states after the choice -> of those that write on
    std::vector<int> all;
    for (const int n : next.histories().parent) all.push_back(of_i[n]);
    return all;
  };
  const Var<T> s = Sum<T>(policy.s, of_next(i.histories().parent));
  const auto mixture = [&] { return Var<T>(next.after(slice_columns(i.weights(), 0, numbers_.words))); };
  if (config_.policy == PolicyKind::table) return longer_prefixes(s, mixture());
  std::vector<int> word;  // any, where no state writes on
  if (i.hard())
    for (const int y : of_next(i.options())) word.push_back(std::min(y, static_cast<int>(numbers_.words) - 1));
  if (config_.policy != PolicyKind::attention) {
    if (i.hard()) return policy.of.step(policy.words, s, word);
    return policy.of.step(policy.of.project(matmul(mixture(), policy.of.word)), s);
  }
  std::vector<int> words(numbers_.words);
  std::iota(words.begin(), words.end(), 0);
  const auto read = i.hard()
                        ? gather_rows(policy.of.word, std::span<const int>(word))
                        : matmul(mixture(), gather_rows(policy.of.word, std::span<const int>(words)));  // without the start
  return policy.of.attention.with(s, add_row(read, place_row(*s.tape, t, width_)));
}

template <class T>
std::unique_ptr<SequenceRewards<T>> Writer<T>::rewards(const Batch& data) const {
  if (tabled_) return std::make_unique<TabledRewards<T>>(data, numbers_);
  const int end = static_cast<int>(numbers_.words);
  if (expressions_) return std::make_unique<MetricReward<T>>(data.ints("wanted"), end, numbers_.longest, solves);
  return sentence_rewards<T>(*config_.reward, data.ints("answer"), end, numbers_.longest);
}

const ModelEntry entry = {
    .name = "writer",
    .summary = "policy that writes a sequence of words and is rewarded for the whole",
    .paper =
        "Williams 1992, Simple statistical gradient-following algorithms; Ranzato et al. 2016, Sequence level training; "
        "Cho et al. 2014 (the GRU); Vaswani et al. 2017 (attention)",
    .dependence = "sequential",
    .kinds = "categorical",
    .parameters = declared<Config>(),
    .needs = {"words", "longest"},
};
HARDGRAD_MODEL(Writer, entry)

}  // namespace
}  // namespace hardgrad::models::writer
