// An encoder-decoder with attention whose decoder reads one source position per target word and head.
//
// Source words x_1..x_L. Target words y_1..y_T: y_T is the end of sentence, y_0 = bos. H = hidden, E = embedding, M = heads.
//
//   encoder   a_i    = [f_i; b_i]                  BiLSTM over the source embeddings, H units per direction: C = 2H numbers
//   start     s_0    = tanh(W_init [f_L; b_1] + b_init), c_0 = 0, z_0 = 0, u_0 = 0
//   state     s_t    = LSTM(E_y y_{t-1} + W_ctx z_{t-1}, s_{t-1})                 W_ctx z_{t-1} depends on `feed`
//   choice    i_t    ~ softmax(e_t)                                               e_t: translator/layers.hpp
//   context   z_t    = a_{i_t}                                                    relaxed weights w: z_t = sum_i w_i a_i
//   readout   u_t    = tanh(W_s s_t + b_s + W_z z_t + W_y E_y y_{t-1})
//   loss      loss_t = -log softmax(W_o u_t + b_o)[y_t]
//
//   feed         context in the recurrence                        choices
//   none         none: no W_ctx                                   factorised
//   soft         sum_i softmax(e_{t-1})_i a_i, not the chosen     factorised
//   sampled      z_{t-1}, the chosen one                          sequential
//   attentional  u_{t-1}, which has read the chosen z_{t-1}       sequential
//
//   order=context_first  e_t (and the posterior) read s_{t-1} in place of s_t, and the context enters the same step:
//                          s_t = LSTM(E_y y_{t-1} + W_ctx z_t, s_{t-1})      feed=soft: sum_i softmax(e_t)_i a_i for z_t
//
// Published networks, with `soft` as the estimator (weights in place of choices):
//   Bahdanau, Cho & Bengio 2015, app. A: order=context_first, feed=sampled, unit=gated, start=backward, readout=maxout
//     s_0 = tanh(W_init b_1 + b_init)
//     e_t = v . tanh(W_q s_{t-1} + W_k a_i + b_k), z_t = sum_i softmax(e_t)_i a_i
//     s_t = gated(E_y y_{t-1} + W_ctx z_t, s_{t-1})
//     u~_t = W_s s_{t-1} + b_s + W_z z_t + W_y E_y y_{t-1}, u_t = max of each two neighbours of u~_t
//   Luong, Pham & Manning 2015, sec. 3, one layer: score=general, encoder=forward, feed=attentional, readout=state
//     s_t = LSTM(E_y y_{t-1} + W_ctx u_{t-1}, s_{t-1})              (input feeding, sec. 3.3)
//     e_t = s_t . W_k a_i, z_t = sum_i softmax(e_t)_i a_i
//     u_t = tanh(W_s s_t + b_s + W_z z_t)                           (eq. 5)
//   Departures: biases where they have none; in the second s_0 and c_0, theirs are the encoder's last.
//
//   other settings: each changes a term above or the order of reading, so this is one network
//   picks=k          Each step (and head) chooses a subset of k positions with the logits e_t (choice/subsets.hpp; all, if there
//                    are fewer), and z_t is the mean of their a_i; relaxed weights sum to k. Not with feed=soft.
//   heads=M          Each step chooses M positions at once, the columns of site `head`. Head h has its own scores e^h_t, and
//                    z_t = [a_{i^1_t}; ...; a_{i^M_t}].
//   attention=none   No choice: z_t = [f_L; b_1] for t = 0..T, the fixed vector of Cho et al. 2014.
//   unit=gated       Gated recurrent units in place of LSTMs, in encoder and decoder: parts/recurrent_unit.hpp.
//   start=backward   s_0 = tanh(W_init b_1 + b_init)
//   encoder=forward  a_i = f_i, C = H, and f_L replaces [f_L; b_1].
//   encoder=none     a_i = E_x x_i, the word's embedding, C = E, and the mean of a_1..a_L replaces [f_L; b_1].
//   readout=R        Terms and activation of u_t: translator/layers.hpp.
//   source=reversed  The encoder reads x_L..x_1 (Sutskever, Vinyals & Le 2014).
//   source=twice     The encoder reads x_1..x_L x_1..x_L (Zaremba & Sutskever 2014).
//                    In either order a_i is the state at the last reading of x_i; f_L is the state at the last word read.
//   local            A window of positions around one place (Luong, Pham & Manning 2015): translator/layers.hpp.
//   null=true        One more position after the last, for no source word: a_{L+1} = n, learned.
//   words=sampled    y_t is a choice, too, of site `word`, V_t options: y_t ~ softmax(W_o u_t + b_o), until the end of the
//                    sentence or the limit. The loss is - reward(y_1 .. y_T, the target) (parts/metric_rewards.hpp): Ranzato et
//                    al. 2016, Sequence level training; Shen et al. 2016, Minimum risk training. Decoded freely, the network is
//                    as with words=given.
//   dropout          Drops entries of a_i and of u_t before W_o in training. All positions and steps of an example lose the
//                    same entries (Gal & Ghahramani 2016).
//
// Refused: heads that do not divide H; attention=none with heads, picks, null, local, score=location or feed=attentional;
// picks > 1 with feed=soft, words=sampled or local; order=context_first unless attention=source and feed=soft or sampled;
// start=backward unless encoder=bidirectional; encoder=none unless source=forward; readout=maxout with odd H; null with local
// or score=location; score=plain_dot unless C = H; with words=sampled a posterior, and targets that need the likelihood of y.
//
// Posterior (if asked for): q(i_t | x, y) = softmax_i of  v_q . tanh(W_qs s_t + W_qy r_t + W_qk a_i + b_qk)
//   (parts/posterior_scores.hpp). Its heads divide the H numbers in the same way.
//   posterior=word      r_t = E_q y_t
//   posterior=sentence  r_t is the state at y_t of a BiLSTM over E_q y_1 .. E_q y_T, as in Deng et al. 2018
//
// Parameters (LSTM gates i, f, g, o; V_s, V_t vocabularies; attention=none: M = 1 and no attention.*):
//   encoder.embedding.weight [V_s, E]
//   encoder.{forward,backward}.{input.weight [4H, E], recurrent.weight [4H, H], bias [4H]} (encoder=forward: no backward;
//   encoder=none: neither; unit=gated: parts/recurrent_unit.hpp, in the decoder under the name decoder.gated)
//   attention.*: translator/layers.hpp; attention.null.weight [1, C] (n, null=true)
//   decoder.embedding.weight [V_t, E], decoder.initial.{weight [H, C], bias [H]} (start=backward: [H, H])
//   decoder.lstm.{input.weight [4H, E], recurrent.weight [4H, H], bias [4H]}, decoder.context.weight [4H, M C] (feed != none;
//   attentional: the numbers of u_t, not M C; unit=gated: 3H, not 4H)
//   readout.state.{weight [H, H], bias [H]}, readout.context.weight [H, M C], readout.word.weight [H, E]
//   (readout=context: readout.context.{weight [H, M C], bias [H] (b_z)} alone; readout=state: no readout.word)
//   output.{weight [V_t, H], bias [V_t]} (readout=maxout: [V_t, H / 2])
//   posterior.*: parts/posterior_scores.hpp, with the key posterior.key
#include <cmath>
#include <optional>

#include "core/models/parts/answer_sampler.hpp"
#include "core/models/parts/unrolled.hpp"
#include "core/models/translator/network.hpp"

namespace hardgrad::models::translator {
namespace {

template <class T>
class Translator final : public Model<T>, public AnswerSampler {
 public:
  Translator(const Config& config, const Blueprint& b)
      : net_(this->parameters_, TranslatorConfig(config, b), b.init), config_(net_.config) {
    labels = static_cast<int>(config_.target_vocabulary);
    places = config_.longest;
    last_label = config_.eos;
    const int H = static_cast<int>(config_.H);
    const bool later = config_.feed == Feed::sampled || config_.feed == Feed::attentional || config_.writes;
    if (config_.attends)
      structure_.sites = {{.name = config_.heads == 1 ? "position" : "head",
                           .options = config_.positions + config_.null,
                           .subset_size = config_.subset_size,
                           .times = config_.longest,
                           .state_width = H,
                           .scope = later ? DependenceScope::later_choices : DependenceScope::own_costs,
                           .kind = config_.subset_size > 1 ? SiteKind::subsets : SiteKind::categorical,
                           .columns = config_.heads}};
    if (config_.writes) {
      structure_.sites.push_back(word_site(labels, config_.longest, H, *config_.words.reward));
      structure_.no_posterior = "its words are choices";
      structure_.rewards = true;
      structure_.no_likelihood = rewards_as_losses;
    }
    structure_.posterior = config_.inferred;
    if (config_.subset_size == 1) structure_.answer_sampler = this;  // dreams replay single options
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t site, int example) const override {
    const int positions = config_.attends ? batch.ints("source_length")(example) + config_.null : 1;
    if (!config_.writes) return {std::vector<int>(config_.heads, positions), batch.ints("target_length")(example)};
    return extent_of_words<T>(structure_, site, std::pow(positions, config_.heads));
  }
  void run(const Batch& batch, Episode<T>& episode) const override {
    if (config_.writes && episode.feeding() == Feeding::teacher_forced)
      write(batch, episode);
    else
      read(batch, episode);
  }
  std::vector<std::pair<std::string, Array<double>>> dropout_factors(const Batch& batch) const override {
    std::vector<std::pair<std::string, Array<double>>> factors;
    if (config_.attends) net_.drop_annotation.template add_factors<T>(batch, factors);
    net_.drop_readout.template add_factors<T>(batch, factors);
    return factors;
  }
  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override {
    return with_sentences(batch, drawn, config_.eos);
  }

 private:
  /// A step t = 1 .. up to its choice i_t ~ softmax(e_t), and the states after it. s becomes the state that e_t reads: s_t =
  /// LSTM(input, s_{t-1}) with `input(states)`, or, with order=context_first, s_{t-1}. `completed(site)` adds to the question what
  /// depends on the words.
  template <class Input, class Completed>
  States<T> step(const Encoded<T>& x, const States<T>& states, LstmState<T>& s, int t, Input input, Completed completed) const {
    s = config_.context_first ? net_.decoder.after(states, s) : net_.decoder.step(states, input(states), s);
    if (!config_.attends) return states.next_step();
    ItemSite<T> site{.name = structure_.sites[0].name,
                     .logits = net_.scores(x, states, s.h, t),
                     .items = x.heads.items(),
                     .state = s.h,
                     .columns = config_.heads,
                     .subset_size = config_.subset_size};
    completed(site);
    return states.choose(site);
  }
  /// u_t of the states `of`, of one step or of several; `state` and `word` as in Readout.
  template <class Of, class State, class Word>
  Var<T> readout(const Encoded<T>& x, const Of& of, std::span<const int> example, State state, Word word) const {
    return net_.readout(*x.first_state.tape, example.size(),
                        config_.attends ? of.read(x.to_readout) : Sum<T>(x.to_readout, example), state, word);
  }
  void read(const Batch& batch, Episode<T>& episode) const;
  void write(const Batch& batch, Episode<T>& episode) const;

  Structure structure_;
  Network<T> net_;
  const TranslatorConfig& config_;
};

// With the given words, or its own.
template <class T>
void Translator<T>::read(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  Sentences sentences(episode, distinct, config_.longest, config_.eos);    // y_t
  const Encoded<T>& x = net_.encoded(tape, distinct.batch(), &sentences);  // a_i
  auto s = net_.decoder.start(x.first_state);
  auto y = x.previous;  // y_{t-1}
  std::optional<typename PosteriorScores<T>::Read> q;

  Unrolled<T> readouts(episode);
  Var<T> fed;              // W_ctx u_{t-1}, feed=attentional
  const auto emit = [&] {  // the words of all steps at once, or of one step if it feeds the next
    const auto example = readouts.each([](int b, int) { return b; });
    const auto u = readout(
        x, readouts, example, [&](const Linear<T>& W_s) { return readouts.after(W_s(readouts.state())); },
        [&] { return Sum<T>(y.to_readout, readouts.each([&](int b, int t) { return y.row(b, t); })); });
    if (config_.feed == Feed::attentional) fed = net_.fed(u);
    const Var<T> kept = net_.drop_readout(u, distinct.batch(), example);
    // loss_t = -log softmax(W_o u_t + b_o)[y_t]
    return readouts.classify(kept, net_.readout.output(), readouts.each([&](int b, int t) { return sentences.label(b, t); }));
  };

  auto states = States<T>(episode, distinct).only(sentences.have(0));
  for (int t = 0; t < sentences.steps(); ++t) {
    const auto input = [&](const States<T>& of) {  // E_y y_{t-1} + W_ctx z, with the context z that `of` reads
      const Sum<T> word(y.to_gates, of.each([&](int b) { return y.row(b, t); }));
      const auto context = fed ? of.after(fed) : config_.attends ? of.read(x.to_gates) : Sum<T>(x.to_gates, of.example());
      return word + context;
    };
    const auto i = step(x, states, s, t + 1, input, [&](ItemSite<T>& site) {
      if (structure_.posterior)
        site.posterior = [&] {
          if (!q) q = net_.q.read(x.heads, x.states, distinct.batch());
          return net_.posterior_scores(x, *q, states, s.h, t + 1);
        };
    });
    const auto scored = s.h;

    // The states whose context the state reads: z_t, its mean, u_t or none.
    const auto read = [&] {
      if (!config_.attends || config_.feed == Feed::none) return states.next_step();
      return config_.feed == Feed::soft ? states.expecting(i) : config_.feed == Feed::sampled ? i : i.next_step();
    };
    std::optional<States<T>> next;
    if (config_.context_first) {
      next = read();
      s = net_.decoder.step(*next, input(*next), s);
      next = next->next_step();
    }
    if (config_.context_first && config_.feed == Feed::sampled && !net_.readout.reads_scored())
      readouts.add_after(t, s.h, i);
    else
      readouts.add(t, net_.readout.reads_scored() ? scored : s.h, i);

    if (!sentences.known() || config_.feed == Feed::attentional) {
      auto words = emit();
      readouts.clear();
      if (!sentences.known()) {
        if (sentences.over(words)) break;
        y = net_.previous(tape, distinct.size(), std::move(words));
      }
    }
    if (t + 1 == sentences.steps()) break;
    if (config_.feed == Feed::attentional) s = net_.decoder.after(i, s);  // as u_t
    if (!next) next = read();
    states = std::move(*next).as_observed().only(sentences.have(t + 1));
  }
  if (!readouts.empty()) emit();
}

// With words that are choices: each state has its own. E_y y_{t-1} and W_ctx z_{t-1} (or W_ctx u_{t-1}) are y and z.
template <class T>
void Translator<T>::write(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const auto& data = distinct.batch();
  const Encoded<T>& x = net_.encoded(tape, data, nullptr);  // a_i
  const std::vector<int> first(distinct.size(), config_.bos);
  auto s = net_.decoder.start(x.first_state);
  Var<T> y = net_.target_words(tape, std::span<const int>(first)), z;
  if (!config_.attends && x.to_gates) z = x.to_gates;  // of every step
  WordChoices<T> words(tape, sentence_rewards<T>(*config_.words.reward, answers_of(data), config_.eos, config_.longest),
                       distinct.size(), labels, config_.eos);

  States<T> states(episode, distinct);
  for (int t = 1; t <= config_.longest; ++t) {
    y = states.after(y);
    const auto input = [&](const States<T>& of) { return Sum<T>(net_.decoder.project(y)) + (z ? of.after(z) : Sum<T>()); };
    const auto i = step(x, states, s, t, input, [&](ItemSite<T>& site) {
      for (int head : x.heads.of(states.example())) site.options.push_back(x.heads.items().count(head));
      site.options = words.limited(std::move(site.options));
    });
    const auto scored = s.h;

    if (config_.attends) {
      words.follow(i);
      if (config_.feed == Feed::sampled) z = i.read(x.to_gates);
      if (config_.feed == Feed::soft) z = i.after(Var<T>(states.expecting(i).read(x.to_gates)));
    } else if (z) {
      z = i.after(states.after(z));
    }
    y = i.after(y);
    if (config_.context_first)
      s = net_.decoder.step(i, Sum<T>(net_.decoder.project(y)) + Sum<T>(z), s);
    else
      s = net_.decoder.after(i, s);

    const auto u = readout(
        x, i, i.example(),
        [&](const Linear<T>& W_s) { return net_.readout.reads_scored() ? i.after(W_s(scored)) : Sum<T>(W_s(s.h)); },
        [&] { return net_.readout.project(y); });
    if (config_.feed == Feed::attentional) z = net_.fed(u);
    const auto of = i.each([](int b) { return b; });
    const auto w = words.choose(  // y_t ~ softmax(W_o u_t + b_o)
        t, i,
        {.name = word_site_name,
         .logits = net_.readout.output()(net_.drop_readout(u, data, of)),
         .items = words.items(),
         .state = s.h});
    y = w.of_table(tape.parameter(*net_.target_words.weight));
    s = net_.decoder.after(w, s);
    if (z) z = w.after(z);
    states = words.go_on(w);
  }
}

const ModelEntry entry = {
    .name = "translator",
    .summary = "encoder-decoder that reads one source position per target word and head",
    .paper =
        "Bahdanau, Cho & Bengio 2015, Neural machine translation by jointly learning to align and translate; hard "
        "attention: Xu et al. 2015, Show, attend and tell; Deng et al. 2018, Latent alignment and variational attention; "
        "scores: Luong, Pham & Manning 2015; heads: Vaswani et al. 2017, Attention is all you need; without attention: Cho et "
        "al. 2014, Learning phrase representations; reversed: Sutskever, Vinyals & Le 2014; twice: Zaremba & Sutskever 2014",
    .dependence =
        "factorised (feed=none|soft), sequential (feed=sampled|attentional or words=sampled), no choice (attention=none)",
    .kinds = "categorical, subset (picks>1)",
    .parameters = declared<Config>(),
    .needs = {"source_vocabulary", "target_vocabulary", "source_length", "target_length", "bos", "eos"},
};
HARDGRAD_MODEL(Translator, entry)

}  // namespace
}  // namespace hardgrad::models::translator
