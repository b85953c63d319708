// A writer: a policy that writes a sequence of words, one choice each, and is rewarded for the whole.
//
// Prompt x_1..x_n of symbols; V words and an end mark (option V); at most L words, t = 1..L.
//   policy=gru    h_i = GRU(P[x_i], h_{i-1}), h_0 = 0;  s_1 = h_n, s_{t+1} = GRU(E[y_t], s_t);  logits_t = W s_t + b
//   policy=table  logits_t = the row of a table for the words y_1 .. y_{t-1}: one free vector for each prefix
//   y_t ~ softmax(logits_t)                                   the choice, site `word`, until the end mark or t = L
//   loss = - reward(y_1, y_2, ..)
//
// The task gives either the reward of every sequence (field "rewards", numbered as in parts/sequence_rewards.hpp), or the right
// answer a_1 .. a_m (field "answer", -1 pads), with a_{m+1} = the end mark if m < L:
//   reward=exact  1 if the sequence is right, else 0
//   reward=share  share of the m + 1 (or L) steps t with y_t = a_t, paid step by step
// Relaxed words are mixtures: E[y_t] is a mean of rows, and rewards are multilinear in the weights.
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
//   recurrent.bias [3H]}, output.{weight [V + 1, H], bias [V + 1]}. policy=table: table.logits [N, V + 1], normal.
#include <fmt/format.h>

#include <memory>
#include <numeric>

#include "core/autodiff/gru.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/word_choices.hpp"
#include "core/nn/gru.hpp"

namespace hardgrad::models::writer {
namespace {

constexpr double most_prefixes = 4096;  // of a table

/// A policy's parameters on a tape, in the order of their set.
template <class T>
struct Weights {
  Var<T> prompt, word, input, input_bias, recurrent, recurrent_bias, output, output_bias;  // policy=gru
  Var<T> table;                                                                            // policy=table
  Var<T> step(Var<T> x, Var<T> h) const {
    return gru_cell(linear(x, input, input_bias), linear(h, recurrent, recurrent_bias), h);
  }
};

template <class T>
class Writer final : public Model<T> {
 public:
  explicit Writer(const Blueprint& b)
      : numbers_{static_cast<std::size_t>(b.dimensions.at("words")), b.dimensions.at("longest")},
        tabular_(b.settings.text("policy") == "table"),
        tabled_(b.dimensions.contains("reward_table")),
        prompted_(b.dimensions.contains("prompt_symbols")),
        exact_(b.settings.text("reward") == "exact"),
        drift_(b.settings.real("drift")),
        away_(b.settings.real("away")),
        reference_(b.settings.text("reference")) {
    const auto& [settings, dimensions, init, posterior] = b;
    if (const double rows = numbers_.count(numbers_.longest - 1); tabular_ && rows > most_prefixes)
      throw UsageError(
          fmt::format("writer: policy=table has a row for each prefix, at most {:.0f}, but there are {:.6g}: take "
                      "fewer words, shorter sequences, or policy=gru",
                      most_prefixes, rows));
    width_ = tabular_ ? 1 : settings.integer("hidden");
    add_parameters(this->parameters_, b, init);
    if (drift_ > 0) add_parameters(delta_, b, init / "behaviour");
    if (reference_ == "initial") add_parameters(initial_, b, init);
    if (reference_ == "initial" && away_ > 0) add_parameters(away_by_, b, init / "reference");
    structure_.sites = {{.name = "word",
                         .options = static_cast<int>(options()),
                         .times = numbers_.longest,
                         .state_width = static_cast<int>(width_),
                         .reach = Reach::later_choices}};
    structure_.no_posterior = "its words are the answer";
    structure_.behaviour = drift_ > 0;
    structure_.reference = reference_ != "none";
    structure_.rewards = !tabled_ || b.dimensions.contains("rewards_from_0");
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::Asked asked(const Batch&, std::size_t site, int) const override {
    return asked_for_words<T>(structure_, site, 1);
  }
  /// The parameters of the other policies: of behaviour their distance delta, of reference theta_0 and delta'.
  std::vector<std::pair<std::string, Array<double>>> constants() const override {
    std::vector<std::pair<std::string, Array<double>>> all;
    const auto add = [&](const std::string& whose, const ParameterSet<T>& set) {
      for (const auto& p : set) all.push_back({whose + p.name, {p.value.shape, {p.value.data.begin(), p.value.data.end()}}});
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
    Var<T> s;  // [n, H]; policy=table: the weights of the prefixes [n, V^(t-1)]
  };
  Var<T> start(Tape<T>& tape, const Batch& data, const Weights<T>& of) const;
  Var<T> logits(const Policy& policy, int t) const;
  /// s after step t, for the states after its choice.
  Var<T> after(const Policy& policy, const States<T>& i, Var<T> w, int t) const;
  std::unique_ptr<SequenceRewards<T>> rewards(const Batch& data) const;

  Structure structure_;
  SequenceNumbers numbers_;
  bool tabular_, tabled_, prompted_, exact_;
  double drift_, away_;
  std::string reference_;
  std::size_t width_;
  ParameterSet<T> delta_, initial_, away_by_;
};

template <class T>
void Writer<T>::add_parameters(ParameterSet<T>& set, const Blueprint& b, Key init) const {
  if (tabular_) {
    normal_parameter(set, "table.logits", {numbers_.first(numbers_.longest), options()}, b.settings.real("scale"), init);
    return;
  }
  const std::size_t E = b.settings.integer("embedding"), H = b.settings.integer("hidden");
  if (prompted_) Embedding<T>(set, "prompt", b.dimensions.at("prompt_symbols"), E, init, 1);
  Embedding<T>(set, "word", numbers_.words, E, init, 1);
  Gru<T>(set, "core", E, H, init);
  Linear<T>(set, "output", H, options(), init);
}

template <class T>
template <class F>
Weights<T> Writer<T>::weights(const ParameterSet<T>& set, F value) const {
  auto each = set.begin();
  const auto next = [&] { return value(*each++); };
  Weights<T> of;
  if (tabular_) {
    of.table = next();
    return of;
  }
  if (prompted_) of.prompt = next();
  for (auto* weight : {&of.word, &of.input, &of.input_bias, &of.recurrent, &of.recurrent_bias, &of.output, &of.output_bias})
    *weight = next();
  return of;
}

template <class T>
void Writer<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const auto& data = distinct.batch();
  const auto constant = [&](const Parameter<T>& p) { return tape.constant({p.value.data.data(), p.rows(), p.cols()}); };

  std::vector<Policy> policies;  // its own, then those of behaviour and reference, if any
  const auto add_policy = [&](const Weights<T>& of) { policies.push_back({of, start(tape, data, of)}); };
  add_policy(weights(this->parameters_, [&](const Parameter<T>& p) { return tape.parameter(p); }));
  // The values `at` of a set, and further ones times `by`.
  const auto displaced = [&](const ParameterSet<T>& further, double by, auto at) {
    auto next = further.begin();
    return [&constant, next, by, at](const Parameter<T>& p) mutable {
      return by > 0 ? add(at(p), affine(constant(*next++), static_cast<T>(by))) : at(p);
    };
  };
  if (drift_ > 0)
    add_policy(weights(this->parameters_,
                       displaced(delta_, drift_, [&](const Parameter<T>& p) { return tape.detach(tape.parameter(p)); })));
  if (!initial_.empty()) add_policy(weights(initial_, displaced(away_by_, away_, constant)));

  WordChoices<T> words(tape, rewards(data), distinct.size(), options(), static_cast<int>(numbers_.words));
  States<T> states(episode, distinct);
  for (int t = 1; t <= numbers_.longest; ++t) {
    ItemSite<T> site{.name = word_site_name,
                     .logits = logits(policies[0], t),
                     .items = words.items(),
                     .state = tabular_ ? tape.constant(states.size(), 1, T{1}) : policies[0].s};
    if (drift_ > 0) site.behaviour = logits(policies[1], t);
    if (!initial_.empty()) site.reference = logits(policies.back(), t);
    if (reference_ == "uniform") site.reference = tape.constant(states.size(), options());
    const auto i = words.choose(t, states, site);  // y_t
    for (auto& policy : policies) policy.s = after(policy, i, i.weights(), t);
    states = words.go_on(i);
    for (auto& policy : policies) policy.s = states.after(policy.s);
  }
}

// Before the first word: h_n.
template <class T>
Var<T> Writer<T>::start(Tape<T>& tape, const Batch& data, const Weights<T>& of) const {
  const std::size_t B = data.examples();
  if (tabular_) return tape.constant(B, 1, T{1});
  auto h = tape.constant(B, width_);
  if (!prompted_) return h;
  const auto& prompt = data.ints("prompt");
  for (std::size_t i = 0; i < prompt.extent(1); ++i) {
    std::vector<int> symbol(B);
    const auto reads = tape.constant(B, 1), waits = tape.constant(B, 1);
    for (std::size_t b = 0; b < B; ++b) {
      symbol[b] = prompt.row(b)[i];
      tape.mutable_value(symbol[b] < 0 ? waits : reads)(b, 0) = 1;
    }
    const auto next = of.step(gather_rows(of.prompt, std::span<const int>(symbol)), h);
    h = add(scale_rows(next, reads), scale_rows(h, waits));  // a prompt that has ended waits
  }
  return h;
}

template <class T>
Var<T> Writer<T>::logits(const Policy& policy, int t) const {
  if (!tabular_) return linear(policy.s, policy.of.output, policy.of.output_bias);
  std::vector<int> rows(policy.s.cols());
  std::iota(rows.begin(), rows.end(), static_cast<int>(numbers_.first(t - 1)));
  return matmul(policy.s, gather_rows(policy.of.table, std::span<const int>(rows)));
}

template <class T>
Var<T> Writer<T>::after(const Policy& policy, const States<T>& i, Var<T> w, int t) const {
  const auto word = slice_columns(w, 0, numbers_.words);
  const Var<T> s = i.after(policy.s);
  if (t == numbers_.longest) return s;  // the last word leads nowhere
  return tabular_ ? longer_prefixes(s, word) : policy.of.step(matmul(word, policy.of.word), s);
}

template <class T>
std::unique_ptr<SequenceRewards<T>> Writer<T>::rewards(const Batch& data) const {
  if (tabled_) return std::make_unique<TabledRewards<T>>(data, numbers_);
  return std::make_unique<RightAnswer<T>>(data.ints("answer"), static_cast<int>(numbers_.words), numbers_.longest, exact_);
}

const ModelEntry entry = {
    .name = "writer",
    .summary = "policy that writes a sequence of words and is rewarded for the whole",
    .paper =
        "Williams 1992, Simple statistical gradient-following algorithms; Ranzato et al. 2016, Sequence level training; "
        "Cho et al. 2014 (the GRU)",
    .dependence = "sequential",
    .kinds = "categorical",
    .parameters = {ParameterInfo::choice("policy", "gru", {"gru", "table"},
                                         "a recurrent network, or free logits for each prefix"),
                   ParameterInfo::integer("hidden", 32, 1, 4096, "units of the GRU"),
                   ParameterInfo::integer("embedding", 16, 1, 4096, "width of symbols and words"),
                   ParameterInfo::real("scale", 1, 0, 1e3, "standard deviation of the initial logits of policy=table"),
                   ParameterInfo::choice("reward", "exact", {"exact", "share"},
                                         "of tasks with a right answer: 1 if all is right, or the share of right words"),
                   ParameterInfo::real("drift", 0, 0, 1e3,
                                       "distance of the behaviour policy, in standard deviations of the initial parameters"),
                   ParameterInfo::choice("reference", "none", {"none", "uniform", "initial"}, "the reference policy"),
                   ParameterInfo::real("away", 0, 0, 1e3, "distance of reference=initial from the start, in the same units")},
    .needs = {"words", "longest"},
};
HARDGRAD_MODEL(Writer, entry)

}  // namespace
}  // namespace hardgrad::models::writer
