// An encoder-decoder with attention whose decoder looks at one source position per target word.
//
// Source words x_1..x_L, target words y_1..y_T (y_T is the end of sentence), y_0 = bos; H = hidden, E = embedding.
//   a_i   = [f_i; b_i]                               BiLSTM over the source embeddings, H units per direction [2H]
//   s_0   = tanh(W_init [f_L; b_1] + b_init), c_0 = 0
//   s_t   = LSTM(E_y y_{t-1} (+ W_ctx z_{t-1}), s_{t-1})      W_ctx only if feed is not none; z_0 = 0
//   e_ti  = v . tanh(W_q s_t + W_k a_i + b_k)         score=additive
//   e_ti  = s_t . W_k a_i                             score=dot
//   z_t   = a_{i_t}, i_t ~ softmax(e_t)               the choice; relaxed weights w: z_t = sum_i w_i a_i
//   u_t   = tanh(W_s s_t + b_s + W_z z_t + W_y E_y y_{t-1})
//   loss_t = -log softmax(W_o u_t + b_o)[y_t]
// feed=sampled: z_{t-1} above is the sampled context (sequential). feed=soft: sum_i softmax(e_{t-1})_i a_i, whatever
// was chosen (factorised). feed=none: no context enters the recurrence (factorised).
// Posterior (if asked for): q(i_t | x, y) = softmax_i of  v_q . tanh(W_qs s_t + W_qy E_q y_t + W_qk a_i + b_qk).
//
// Parameters (LSTM gates i, f, g, o; V_s, V_t vocabularies):
//   encoder.embedding.weight [V_s, E]     encoder.{forward,backward}.{input.weight [4H, E], recurrent.weight [4H, H], bias [4H]}
//   attention.key.weight [H, 2H]          attention.key.bias [H], attention.query.weight [H, H], attention.score.weight [1, H]
//                                         (the last three only for score=additive)
//   decoder.embedding.weight [V_t, E]     decoder.initial.{weight [H, 2H], bias [H]}
//   decoder.lstm.{input.weight [4H, E], recurrent.weight [4H, H], bias [4H]}    decoder.context.weight [4H, 2H] (feed != none)
//   readout.state.{weight [H, H], bias [H]}, readout.context.weight [H, 2H], readout.word.weight [H, E]
//   output.{weight [V_t, H], bias [V_t]}
//   posterior.key.{weight [H, 2H], bias [H]}, posterior.state.weight [H, H], posterior.embedding.weight [V_t, E],
//   posterior.word.weight [H, E], posterior.score.weight [1, H]
#include <algorithm>
#include <cmath>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/models/bilstm.hpp"
#include "core/models/model.hpp"
#include "core/models/replicates.hpp"
#include "core/models/select.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {
namespace {

enum class Score { additive, dot };
enum class Feed { none, soft, sampled };

template <class T>
class Translator final : public Model<T> {
 public:
  Translator(const Settings& settings, const Dimensions& dimensions, Key init)
      : score_(settings.text("score") == "dot" ? Score::dot : Score::additive),
        feed_(settings.text("feed") == "none"   ? Feed::none
              : settings.text("feed") == "soft" ? Feed::soft
                                                : Feed::sampled),
        bos_(dimensions.at("bos")),
        eos_(dimensions.at("eos")) {
    const auto E = settings.integer("embedding"), H = settings.integer("hidden");
    auto& set = this->parameters_;
    const int source = dimensions.at("source_vocabulary"), target = dimensions.at("target_vocabulary");
    source_words_ = {set, "encoder.embedding", std::size_t(source), std::size_t(E), init};
    encoder_ = {set, "encoder", std::size_t(E), std::size_t(H), init};
    const std::size_t h = H, e = E;
    key_ = {set, "attention.key", 2 * h, h, init, score_ == Score::additive};
    if (score_ == Score::additive) {
      query_ = {set, "attention.query", h, h, init, false};
      score_vector_ =
          &uniform_parameter(set, "attention.score.weight", {1, h}, 1 / std::sqrt(double(h)), init);
    }
    target_words_ = {set, "decoder.embedding", std::size_t(target), e, init};
    initial_ = {set, "decoder.initial", 2 * h, h, init};
    decoder_ = {set, "decoder.lstm", e, h, init};
    if (feed_ != Feed::none) context_ = {set, "decoder.context", 2 * h, 4 * h, init, false};
    readout_state_ = {set, "readout.state", h, h, init};
    readout_context_ = {set, "readout.context", 2 * h, h, init, false};
    readout_word_ = {set, "readout.word", e, h, init, false};
    output_ = {set, "output", h, std::size_t(target), init};

    structure_.steps = dimensions.at("target_length");
    structure_.options = dimensions.at("source_length");
    structure_.dependence = feed_ == Feed::sampled ? Dependence::sequential : Dependence::factorised;
    structure_.state_width = H;
    structure_.labels = target;
    structure_.places = structure_.steps;
    structure_.last_label = eos_;
    structure_.posterior = dimensions.contains("posterior") && dimensions.at("posterior");
    if (structure_.posterior) {
      posterior_key_ = {set, "posterior.key", 2 * h, h, init};
      posterior_state_ = {set, "posterior.state", h, h, init, false};
      posterior_words_ = {set, "posterior.embedding", std::size_t(target), e, init};
      posterior_word_ = {set, "posterior.word", e, h, init, false};
      posterior_vector_ =
          &uniform_parameter(set, "posterior.score.weight", {1, h}, 1 / std::sqrt(double(h)), init);
    }
  }

  const Structure& structure() const override { return structure_; }

  std::vector<double> outcomes(const Batch& batch) const override {
    const auto &source = batch.ints("source_length").data, &target = batch.ints("target_length").data;
    std::vector<double> count(source.size());
    for (std::size_t b = 0; b < count.size(); ++b) count[b] = std::pow(double(source[b]), double(target[b]));
    return count;
  }

  void run(const Batch& batch, Episode<T>& episode) const override;

  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override {
    auto result = batch;
    auto& length = result.integers.at("target_length").data;
    Array<int> target({length.size(), drawn.size()});
    for (std::size_t b = 0; b < length.size(); ++b) {
      length[b] = 0;
      for (std::size_t t = 0; t < drawn.size(); ++t) {
        length[b] += drawn[t][b] >= 0;
        target.row(b)[t] = drawn[t][b] >= 0 ? drawn[t][b] : eos_;  // padding
      }
    }
    result.integers.at("target") = std::move(target);
    return result;
  }

 private:
  // What depends on the sentences alone.
  struct Encoded {
    Array<int> source, target;  // target: if fed with the truth
    std::vector<int> source_length;
    Var<T> states;           // [D L, 2H] a_i
    Var<T> readout_context;  // [D L, H] W_z a_i
    Var<T> keys;             // [D L, H]
    Var<T> context_gates;    // [D L, 4H], if a context is fed
    Var<T> first_state;      // [D, H] s_0
    Words<T> words;          // [T D] y_{t-1}, step by step, if fed with the truth
    Var<T> word_gates, word_readout;
  };
  Encoded encode(Tape<T>& tape, const Batch& data, bool forced, std::size_t L, int steps) const;

  // What stays the same for the whole run.
  struct Run {
    const Batch& batch;
    Episode<T>& episode;
    bool forced;  // fed with the truth
    // Equal examples are encoded once: D of them differ, and `distinct` says which one an example is. Until they choose,
    // equal examples are one row of the decoder.
    std::size_t D, L;
    const std::vector<int>& distinct;                     // [B]
    std::span<const int> source_length, target_length;    // [D]
    const Array<int>& target;                             // [D, T]
    Var<T> states;            // [D L, 2H] a_i
    Var<T> readout_context;   // [D L, H] W_z a_i
    Var<T> posterior_keys{};  // [D L, H], on demand

    /// The distinct example of each row.
    std::vector<int> examples(const Rows& rows) const {
      std::vector<int> example(rows.size());
      for (std::size_t r = 0; r < example.size(); ++r) example[r] = distinct[rows.example[r]];
      return example;
    }
    /// Among the rows of values [D L, .]: the items chosen by a hard choice.
    std::vector<int> chosen(const Choice<T>& choice) const {
      auto index = examples(*choice.rows);
      for (std::size_t r = 0; r < index.size(); ++r) index[r] = index[r] * static_cast<int>(L) + choice.option[r];
      return index;
    }
    /// The chosen item, or the mixture of the items: values [D L, C] -> [R', C].
    Var<T> take(const Choice<T>& choice, Var<T> values) const {
      const auto index = choice.hard() ? chosen(choice) : examples(*choice.rows);
      return choice.hard() ? gather_rows(values, std::span<const int>(index))
                           : mix(choice.weights, values, std::span<const int>(index));
    }
  };
  // One answered step whose word is still to be predicted.
  struct Pending {
    int step;
    Choice<T> choice;
    Var<T> state;            // [R, H] s_t of the rows that asked
    Var<T> words;            // [N, H] W_y E_y y_{t-1}
    std::vector<int> asker;  // [R'] row of `state`
    bool shared;             // rows of one asker and one option are one
    std::vector<int> word;   // [R'] row of `words`
    std::vector<char> live;  // [R'] whether there is a word to predict
  };

  Var<T> scores(const Run& run, std::span<const int> example, Var<T> state, Var<T> keys) const {
    if (score_ == Score::dot) return dot_scores(state, keys, example, run.L);
    return additive_scores(query_(state), keys, run.episode.tape().parameter(*score_vector_), example, run.L);
  }
  Var<T> proposal(Run& run, const RowsPtr& rows, Var<T> state, int step) const;
  std::vector<int> predict(const Run& run, const std::vector<Pending>& steps) const;

  Structure structure_;
  Score score_;
  Feed feed_;
  int bos_, eos_;
  Embedding<T> source_words_, target_words_, posterior_words_;
  BiLstm<T> encoder_;
  Lstm<T> decoder_;
  Linear<T> key_, query_, initial_, context_, readout_state_, readout_context_, readout_word_, output_;
  Linear<T> posterior_key_, posterior_state_, posterior_word_;
  const Parameter<T>*score_vector_ = nullptr, *posterior_vector_ = nullptr;
};

template <class T>
void Translator<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const bool forced = episode.feeding() == Feeding::teacher_forced;
  const Distinct distinct(batch);
  if (!forced && !distinct.all()) throw Bug("translator: equal examples can be one only if fed with the truth");
  const Batch few = distinct.all() ? Batch{} : batch.select(distinct.first);
  const Batch& data = distinct.all() ? batch : few;
  const auto &source_length = data.ints("source_length").data, &target_length = data.ints("target_length").data;
  const std::size_t B = batch.examples(), D = distinct.first.size(), H = decoder_.hidden;
  const std::size_t L = *std::max_element(source_length.begin(), source_length.end());
  const int steps = forced ? *std::max_element(target_length.begin(), target_length.end()) : structure_.steps;

  const auto& encoded = tape.template shared<Encoded>(
      this,
      [&](const Encoded& known) {
        return known.source.data == data.ints("source").data && known.source_length == source_length &&
               known.words.index.size() == (forced ? steps * D : D) &&
               (forced ? known.target.data == data.ints("target").data : known.target.data.empty());
      },
      [&] { return encode(tape, data, forced, L, steps); });
  Run run{batch,
          episode,
          forced,
          D,
          L,
          distinct.index,
          source_length,
          target_length,
          data.ints("target"),
          encoded.states,
          encoded.readout_context};
  const auto keys = encoded.keys, context_gates = encoded.context_gates;
  auto words = encoded.words;
  auto word_gates = encoded.word_gates, word_readout = encoded.word_readout;

  auto rows = episode.root();
  const auto recurrent = tape.parameter(*decoder_.recurrent);
  auto h = encoded.first_state;  // [R, H] of the rows that asked last
  auto c = tape.constant(D, H);
  Var<T> from_context;  // gates' share of the last context: gathered by `context_index` if that is not empty
  std::vector<int> context_index;
  std::vector<char> over(B, false);  // free running: the sentence has ended
  std::vector<Pending> pending;

  for (int t = 0; t < steps; ++t) {
    const bool root = rows->is_root(), expands = root && D < B;
    std::vector<int> example = root ? range(0, D) : run.examples(*rows), word(example.size()), options(rows->size());
    for (std::size_t r = 0; r < word.size(); ++r) word[r] = words.index[(forced ? t * D : 0) + example[r]];
    for (std::size_t r = 0; r < options.size(); ++r) {
      const int b = distinct.index[rows->example[r]];
      options[r] = (forced ? t < target_length[b] : !over[b]) ? source_length[b] : 1;
    }
    std::vector<int> moved;  // rows that go on from fewer than asked
    std::span<const int> parent = root ? std::span<const int>{} : parents(*rows);
    if (!root && rows->origin->is_root() && D < B) {
      moved = run.examples(*rows);
      parent = moved;
    }
    // Where rows branch, the product is taken before; where they do not, in place.
    const auto from_state = parent.empty() ? Var<T>{} : linear(h, recurrent);
    auto gates =
        gather_sum<T>(word.size(), {{from_state, parent}, {word_gates, word}, {from_context, context_index}});
    if (!from_state) gates = add_linear(gates, h, recurrent);
    const auto state = lstm_cell(gates, parent.empty() ? c : gather_rows(c, parent));
    const auto every = [&](Var<T> x) { return expands ? gather_rows(x, std::span<const int>(distinct.index)) : x; };

    Site<T> site;
    site.rows = rows;
    site.logits = every(scores(run, std::span<const int>(example), state.h, keys));
    site.options = std::move(options);
    site.state = every(state.h);
    if (structure_.posterior)
      site.proposal = [&, h = site.state, rows] { return proposal(run, rows, h, t); };
    const auto choice = episode.choose(std::move(site));

    Pending answered{t,
                     choice,
                     state.h,
                     word_readout,
                     choice.rows->parent,
                     root && forced,
                     std::vector<int>(choice.rows->size()),
                     std::vector<char>(choice.rows->size())};
    for (std::size_t r = 0; r < choice.rows->size(); ++r) {
      const int b = distinct.index[choice.rows->example[r]];
      if (root) answered.asker[r] = b;
      answered.word[r] = words.index[(forced ? t * D : 0) + b];
      answered.live[r] = forced ? t < target_length[b] : !over[b];
    }
    pending.push_back(std::move(answered));
    if (!forced) {
      if (choice.rows->size() != B) throw Bug("translator: free running takes one row per example");
      auto tokens = predict(run, pending);
      pending.clear();
      bool all_over = true;
      for (std::size_t b = 0; b < B; ++b) {
        over[b] |= tokens[b] == eos_;
        if (tokens[b] < 0) tokens[b] = eos_;
        all_over &= static_cast<bool>(over[b]);
      }
      if (all_over) break;
      words = Words<T>(tape, target_words_, std::move(tokens));
      word_gates = decoder_.project(words.rows);
      word_readout = readout_word_(words.rows);
    }
    if (t + 1 == steps) break;

    h = state.h;
    c = state.c;
    if (feed_ == Feed::soft) {
      auto weights = probabilities(episode.steps().back().question.log_prior);
      if (expands) weights = gather_rows(weights, std::span<const int>(distinct.first));
      from_context = mix(weights, context_gates, std::span<const int>(example));
    } else if (feed_ == Feed::sampled) {
      rows = choice.rows;
      if (choice.hard()) {
        from_context = context_gates;
        context_index = run.chosen(choice);
      } else {
        from_context = run.take(choice, context_gates);
        context_index.clear();
      }
    }
  }
  if (forced) predict(run, pending);
}

template <class T>
auto Translator<T>::encode(Tape<T>& tape, const Batch& data, bool forced, std::size_t L, int steps) const -> Encoded {
  const auto& length = data.ints("source_length").data;
  const std::size_t D = length.size();
  Encoded made;
  made.source = data.ints("source");
  if (forced) made.target = data.ints("target");
  made.source_length = length;
  const auto encoded = encoder_(tape, source_words_, made.source, length, L);
  made.states = encoded.states;
  made.readout_context = readout_context_(encoded.states);
  made.keys = key_(encoded.states);
  if (feed_ != Feed::none) made.context_gates = context_(encoded.states);
  made.first_state = tanh(initial_(encoded.ends));
  std::vector<int> previous((forced ? steps : 1) * D, bos_);  // the words of all steps at once, if they are known
  for (std::size_t t = 1; t * D < previous.size(); ++t)
    for (std::size_t b = 0; b < D; ++b) previous[t * D + b] = made.target.row(b)[t - 1];
  made.words = Words<T>(tape, target_words_, std::move(previous));
  made.word_gates = decoder_.project(made.words.rows);
  made.word_readout = readout_word_(made.words.rows);
  return made;
}

template <class T>
Var<T> Translator<T>::proposal(Run& run, const RowsPtr& rows, Var<T> state, int step) const {
  auto& tape = run.episode.tape();
  if (!run.posterior_keys) run.posterior_keys = posterior_key_(run.states);
  std::vector<int> words(run.D, -1);  // beyond its end an example has no word: zeros
  for (std::size_t b = 0; b < run.D; ++b)
    if (step < run.target_length[b]) words[b] = run.target.row(b)[step];
  const auto said = posterior_word_(posterior_words_(tape, std::span<const int>(words)));  // [B, H]
  const auto example = run.examples(*rows);
  const auto query = gather_sum<T>(rows->size(), {{posterior_state_(state)}, {said, example}});
  return additive_scores(query, run.posterior_keys, tape.parameter(*posterior_vector_),
                         std::span<const int>(example), run.L);
}

// The words of the given steps, in one product: [sum of live rows, V_t]. Returns the labels of the last step's rows.
template <class T>
std::vector<int> Translator<T>::predict(const Run& run, const std::vector<Pending>& steps) const {
  auto& tape = run.episode.tape();
  const bool gathers = std::all_of(steps.begin(), steps.end(), [](const auto& s) { return s.choice.hard(); });
  std::vector<Var<T>> states, mixtures;
  std::vector<int> state_row, context_row, word_row, label, example;
  std::vector<int> place;     // of each row of each step: its place among the rows predicted, -1 if it has none
  std::vector<int> made;      // where rows are shared: the place of (asker, option)
  std::vector<double> share;  // of the rows' loss in the mean of each step's costs
  int asked = 0, answered = 0;
  for (const auto& s : steps) {
    const auto& rows = *s.choice.rows;
    states.push_back(s.state);
    const bool shared = s.shared && gathers;
    if (!gathers) mixtures.push_back(run.take(s.choice, run.readout_context));
    if (shared) made.assign(s.state.rows() * run.L, -1);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      place.push_back(-1);
      if (!s.live[r]) continue;
      place.back() = static_cast<int>(label.size());
      if (shared) {
        int& known = made[s.asker[r] * run.L + s.choice.option[r]];
        if (known >= 0) {
          place.back() = known;
          share[known] += 1.0 / static_cast<double>(rows.size());
          continue;
        }
        known = place.back();
      }
      const int b = run.distinct[rows.example[r]];
      state_row.push_back(asked + s.asker[r]);
      context_row.push_back(gathers ? b * static_cast<int>(run.L) + s.choice.option[r]
                                    : answered + static_cast<int>(r));
      word_row.push_back(s.word[r]);
      label.push_back(run.forced ? run.target.row(b)[s.step] : -1);
      example.push_back(b);
      share.push_back(1.0 / static_cast<double>(rows.size()));
    }
    asked += static_cast<int>(s.state.rows());
    answered += static_cast<int>(rows.size());
  }
  const auto state = states.size() == 1 ? states[0] : stack_rows(std::span<const Var<T>>(states));
  const auto context = gathers                ? run.readout_context
                       : mixtures.size() == 1 ? mixtures[0]
                                              : stack_rows(std::span<const Var<T>>(mixtures));
  const auto u = tanh(gather_sum<T>(
      label.size(),
      {{readout_state_(state), state_row}, {context, context_row}, {steps[0].words, word_row}}));
  if (run.episode.feeding() == Feeding::dreaming) {  // one step, one row an example
    const auto drawn = run.episode.observe(example, output_(u), steps[0].step);
    std::vector<int> labels(run.D, -1);
    for (std::size_t i = 0; i < drawn.size(); ++i) labels[example[i]] = drawn[i];
    return labels;
  }
  const auto word = linear_cross_entropy(u, tape.parameter(*output_.weight), tape.parameter(*output_.bias),
                                         std::span<const int>(label),
                                         run.episode.averages_costs() ? std::span<const double>(share)
                                                                      : std::span<const double>{});
  std::vector<int> labels;
  int next = 0;
  for (const auto& s : steps) {
    std::vector<int> row(s.live.size(), -1);
    labels.assign(s.live.size(), -1);
    for (std::size_t r = 0; r < row.size(); ++r) {
      row[r] = place[next++];
      if (row[r] >= 0) labels[r] = word.label[row[r]];
    }
    if (run.forced) run.episode.cost(s.choice.rows, gather_rows(word.loss, std::span<const int>(row)));
    run.episode.predict(s.choice.rows, labels);
  }
  return labels;
}

HARDGRAD_MODEL(Translator, {
  .name = "translator",
  .summary = "encoder-decoder that looks at one source position per target word",
  .paper = "Bahdanau, Cho & Bengio 2015, Neural machine translation by jointly learning to align and translate; hard "
           "attention: Xu et al. 2015, Show, attend and tell; Deng et al. 2018, Latent alignment and variational attention",
  .dependence = "factorised (feed=none|soft), sequential (feed=sampled)",
  .kinds = "categorical",
  .parameters = {ParameterInfo::integer("embedding", 32, 1, 4096, "width of the word embeddings"),
                 ParameterInfo::integer("hidden", 32, 1, 4096, "units of the decoder and of each encoder direction"),
                 ParameterInfo::choice("score", "additive", {"additive", "dot"}, "how a position is scored"),
                 ParameterInfo::choice("feed", "none", {"none", "soft", "sampled"},
                                       "the context that enters the decoder's next state")},
  .needs = {"source_vocabulary", "target_vocabulary", "source_length", "target_length", "bos", "eos"},
})

}  // namespace
}  // namespace hardgrad
