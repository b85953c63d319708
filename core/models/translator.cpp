// An encoder-decoder with attention whose decoder reads one source position per target word and head.
//
// Source words x_1..x_L. Target words y_1..y_T: y_T is the end of sentence, y_0 = bos. H = hidden, E = embedding, M = heads.
//
//   encoder   a_i    = [f_i; b_i]                  BiLSTM over the source embeddings, H units per direction: C = 2H numbers
//   start     s_0    = tanh(W_init [f_L; b_1] + b_init), c_0 = 0, z_0 = 0, u_0 = 0
//   state     s_t    = LSTM(E_y y_{t-1} + W_ctx z_{t-1}, s_{t-1})                 W_ctx z_{t-1} depends on `feed`
//   choice    i_t    ~ softmax(e_t)                                               e_t: parts/position_scores.hpp
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
//   readout=context  u_t = tanh(W_z z_t + b_z): a word depends on the chosen position only, as in the IBM models (Brown et al.
//                    1993), whose translation table this network and whose distortion the attention replaces.
//   readout=state    Without W_y E_y y_{t-1}.
//   readout=maxout   u_t = the larger of each two neighbours of the sum, H / 2 numbers, in place of its tanh. The state is the
//                    one that e_t reads: s_{t-1} with order=context_first.
//   source=reversed  The encoder reads x_L..x_1 (Sutskever, Vinyals & Le 2014).
//   source=twice     The encoder reads x_1..x_L x_1..x_L (Zaremba & Sutskever 2014).
//                    In either order a_i is the state at the last reading of x_i; f_L is the state at the last word read.
//   local            A window of positions around one place (Luong, Pham & Manning 2015): parts/local_window.hpp.
//   null=true        One more position after the last, for no source word: a_{L+1} = n, learned.
//   words=sampled    y_t is a choice, too, of site `word`, V_t options: y_t ~ softmax(W_o u_t + b_o), until the end of the
//                    sentence or the limit. The loss is - reward(y_1 .. y_T, the target) (parts/metric_rewards.hpp): Ranzato et
//                    al. 2016, Sequence level training; Shen et al. 2016, Minimum risk training. Decoded freely, the network is
//                    as with words=given.
//   dropout          Drops entries of a_i and of u_t before W_o in training. All positions and steps of an example lose the
//                    same entries (Gal & Ghahramani 2016).
//
// Posterior (if asked for): q(i_t | x, y) = softmax_i of  v_q . tanh(W_qs s_t + W_qy r_t + W_qk a_i + b_qk). Its heads divide
// the H numbers in the same way.
//   posterior=word      r_t = E_q y_t
//   posterior=sentence  r_t is the state at y_t of a BiLSTM over E_q y_1 .. E_q y_T, as in Deng et al. 2018
//
// Parameters (LSTM gates i, f, g, o; V_s, V_t vocabularies; attention=none: M = 1 and no attention.*):
//   encoder.embedding.weight [V_s, E]
//   encoder.{forward,backward}.{input.weight [4H, E], recurrent.weight [4H, H], bias [4H]} (encoder=forward: no backward;
//   encoder=none: neither; unit=gated: parts/recurrent_unit.hpp, in the decoder under the name decoder.gated)
//   attention.*: parts/position_scores.hpp, parts/local_window.hpp; attention.null.weight [1, C] (n, null=true)
//   decoder.embedding.weight [V_t, E], decoder.initial.{weight [H, C], bias [H]} (start=backward: [H, H])
//   decoder.lstm.{input.weight [4H, E], recurrent.weight [4H, H], bias [4H]}, decoder.context.weight [4H, M C] (feed != none;
//   attentional: the numbers of u_t, not M C; unit=gated: 3H, not 4H)
//   readout.state.{weight [H, H], bias [H]}, readout.context.weight [H, M C], readout.word.weight [H, E]
//   (readout=context: readout.context.{weight [H, M C], bias [H] (b_z)} alone; readout=state: no readout.word)
//   output.{weight [V_t, H], bias [V_t]} (readout=maxout: [V_t, H / 2])
//   posterior.key.{weight [H, C], bias [H]}, posterior.state.weight [H, H], posterior.embedding.weight [V_t, E],
//   posterior.word.weight (W_qy) [H, E], posterior.score.weight [1, H]; posterior=sentence: parts/target_reading.hpp
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/autodiff/elementwise.hpp"
#include "core/models/parts/bilstm.hpp"
#include "core/models/parts/dreams.hpp"
#include "core/models/parts/dropout.hpp"
#include "core/models/parts/heads.hpp"
#include "core/models/parts/local_window.hpp"
#include "core/models/parts/means.hpp"
#include "core/models/parts/metric_rewards.hpp"
#include "core/models/parts/position_scores.hpp"
#include "core/models/parts/reading.hpp"
#include "core/models/parts/recurrent_unit.hpp"
#include "core/models/parts/sentences.hpp"
#include "core/models/parts/target_reading.hpp"
#include "core/models/parts/unrolled.hpp"
#include "core/models/parts/word_choices.hpp"

namespace hardgrad::models::translator {
namespace {

template <class T>
class Translator final : public Model<T>, public Dreams {
 public:
  explicit Translator(const Blueprint& b)
      : feed_(b.settings.text("feed")),
        reading_(b.settings.text("source")),
        readout_(b.settings.text("readout")),
        context_first_(b.settings.text("order") == "context_first"),
        attends_(b.settings.text("attention") == "source"),
        null_(b.settings.flag("null")),
        writes_(b.settings.text("words") == "sampled"),
        reward_(b.settings.text("reward")),
        heads_(b.settings.integer("heads")),
        picks_(b.settings.integer("picks")),
        longest_(b.dimensions.at("target_length")),
        bos_(b.dimensions.at("bos")),
        eos_(b.dimensions.at("eos")) {
    const auto& [settings, dimensions, init, posterior] = b;
    const std::size_t E = settings.integer("embedding"), H = settings.integer("hidden"), M = heads_;
    if (H % M != 0) throw UsageError("translator: heads=" + std::to_string(M) + " must divide hidden=" + std::to_string(H));
    if (!attends_ && (M > 1 || null_ || picks_ > 1))
      throw UsageError("translator: attention=none has neither heads, picks nor a null position; drop " +
                       std::string(null_   ? "null"
                                   : M > 1 ? "heads"
                                           : "picks"));
    if (picks_ > 1 && feed_ == "soft")
      throw UsageError("translator: feed=soft feeds the mean of one choice; give picks=1, or feed=none or feed=sampled");
    if (picks_ > 1 && writes_) throw UsageError("translator: words=sampled chooses one position beside a word; give picks=1");
    if (context_first_ && (!attends_ || (feed_ != "soft" && feed_ != "sampled")))
      throw UsageError(
          "translator: order=context_first feeds the context of a step to its state: give attention=source and feed=soft or "
          "feed=sampled");
    const auto encoder = b.settings.text("encoder");
    const std::size_t C = encoder == "bidirectional" ? 2 * H : encoder == "forward" ? H : E;
    const bool backward = settings.text("start") == "backward", gated = settings.text("unit") == "gated";
    if (backward && encoder != "bidirectional")
      throw UsageError("translator: start=backward needs an encoder that reads backward: give encoder=bidirectional");
    if (!attends_ && feed_ == "attentional")
      throw UsageError("translator: feed=attentional feeds what attention has read: give attention=source or another feed");
    if (readout_ == "maxout" && H % 2 != 0)
      throw UsageError(
          fmt::format("translator: readout=maxout takes the larger of each two numbers: hidden={} must be even", H));
    if (encoder == "none" && reading_ != "forward")
      throw UsageError("translator: encoder=none reads words in no order; drop source=" + reading_);
    const auto local = b.settings.text("local"), score = b.settings.text("score");
    if (!attends_ && (local != "none" || score == "location"))
      throw UsageError("translator: attention=none has neither scores nor a window: drop score and local");
    if (null_ && (local != "none" || score == "location"))
      throw UsageError(
          "translator: a null position has no place in the source: drop null, or take local=none and another score");
    if (picks_ > 1 && local != "none")
      throw UsageError("translator: a window may hold fewer positions than picks: give picks=1 or local=none");
    if (attends_ && score == "plain_dot" && C != H)
      throw UsageError(fmt::format(
          "translator: score=plain_dot multiplies states of hidden={} numbers with annotations of {}: take encoder=forward, "
          "encoder=none with embedding={}, or score=dot",
          H, C, H));
    const std::size_t read = readout_ == "maxout" ? H / 2 : H;  // numbers of u_t
    drop_annotation_ = {"annotation", 0, settings.real("dropout"), C};
    drop_readout_ = {"readout", 1, settings.real("dropout"), read};
    const std::size_t source = dimensions.at("source_vocabulary"), target = dimensions.at("target_vocabulary");
    auto& set = this->parameters_;
    source_words_ = {set, "encoder.embedding", source, E, init};
    if (encoder != "none") encoder_ = {set, "encoder", E, H, init, encoder == "bidirectional", gated};
    if (attends_) {
      scores_ = {set, score, C, H, static_cast<std::size_t>(dimensions.at("source_length")), M, init};
      window_ = {set, local, static_cast<int>(settings.integer("window")), H, heads_, init};
      if (null_) null_vector_ = &uniform_vector(set, "attention.null.weight", C, init);
    }
    target_words_ = {set, "decoder.embedding", target, E, init};
    begins_from_ = backward ? H : 0;
    initial_ = {set, "decoder.initial", C - begins_from_, H, init};
    decoder_ = {set, gated ? "decoder.gated" : "decoder.lstm", E, H, init, gated};
    if (feed_ != "none")
      context_ = {set, "decoder.context", feed_ == "attentional" ? read : M * C, decoder_.gates(), init, false};
    if (readout_ != "context") readout_state_ = {set, "readout.state", H, H, init};
    readout_context_ = {set, "readout.context", M * C, H, init, readout_ == "context"};
    if (readout_ == "all" || readout_ == "maxout") readout_word_ = {set, "readout.word", E, H, init, false};
    output_ = {set, "output", read, target, init};
    if (picks_ == 1) structure_.dreams = this;  // dreams replay single options
    labels = static_cast<int>(target);
    places = longest_;
    last_label = eos_;
    if (attends_)
      structure_.sites = {
          {.name = heads_ == 1 ? "position" : "head",
           .options = dimensions.at("source_length") + null_,
           .picks = picks_,
           .times = longest_,
           .state_width = static_cast<int>(H),
           .reach = feed_ == "sampled" || feed_ == "attentional" || writes_ ? Reach::later_choices : Reach::own_costs,
           .kind = picks_ > 1 ? SiteKind::subsets : SiteKind::categorical,
           .columns = heads_}};
    if (writes_) {
      structure_.sites.push_back(word_site(labels, longest_, static_cast<int>(H), reward_));
      structure_.no_posterior = "its words are choices";
      structure_.rewards = true;
    }
    structure_.posterior = posterior && attends_ && !writes_;
    if (structure_.posterior) {
      posterior_key_ = {set, "posterior.key", C, H, init};
      posterior_state_ = {set, "posterior.state", H, H, init, false};
      posterior_target_ = {set, "posterior", target, E, H, init, b.settings.text("posterior") == "sentence"};
      posterior_vector_ = &uniform_vector(set, "posterior.score.weight", H, init);
    }
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::Asked asked(const Batch& batch, std::size_t site, int example) const override {
    const int positions = attends_ ? batch.ints("source_length").data[example] + null_ : 1;
    if (!writes_) return {std::vector<int>(heads_, positions), batch.ints("target_length").data[example]};
    return asked_for_words<T>(structure_, site, std::pow(positions, heads_));
  }
  void run(const Batch& batch, Episode<T>& episode) const override {
    if (writes_ && episode.feeding() == Feeding::teacher_forced)
      write(batch, episode);
    else
      read(batch, episode);
  }
  std::vector<std::pair<std::string, Array<double>>> dropout_factors(const Batch& batch) const override {
    std::vector<std::pair<std::string, Array<double>>> factors;
    if (attends_) drop_annotation_.add_factors<T>(batch, factors);
    drop_readout_.add_factors<T>(batch, factors);
    return factors;
  }
  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override {
    return with_sentences(batch, drawn, eos_);
  }

 private:
  // u_t from the sum of its terms [R, H]
  Var<T> squashed(Var<T> terms) const {
    if (readout_ != "maxout") return tanh(terms);
    const auto pairs = reshape(terms, 2);
    const auto a = slice_columns(pairs, 0, 1), b = slice_columns(pairs, 1, 1);
    return reshape(add(b, relu(subtract(a, b))), terms.cols() / 2);
  }
  std::vector<int> dropped(const Batch& data) const {
    return drop_readout_.in(data) ? data.ints("dropout").data : std::vector<int>{};
  }
  // The words y_{t-1} of all steps, or of one step if they are not known beforehand. Each distinct word is projected once.
  struct Previous {
    std::size_t examples;  // D
    Words<T> words;        // [T D] or [D]
    Var<T> to_gates, to_readout;
    int row(int example, int t) const { return words.row(t * examples + example); }
  };
  Previous previous(Tape<T>& tape, std::size_t examples, std::vector<int> words) const {
    Previous y{examples, Words<T>(tape, target_words_, std::move(words)), {}, {}};
    y.to_gates = decoder_.project(y.words.rows);
    if (readout_word_.weight) y.to_readout = readout_word_(y.words.rows);
    return y;
  }
  // Values that depend on the sentences only. Equal examples are encoded once; D examples are distinct.
  struct Encoded {
    Array<int> source, target;    // target: empty unless fed with the truth
    std::vector<int> length;      // of the source
    std::vector<int> dropped;     // keys of dropout
    Heads heads;                  // the positions of every head
    Var<T> states, keys;          // a_i [positions, C], k_i
    Var<T> to_gates, to_readout;  // W_ctx a_i (if a context is fed), W_z a_i; attention=none: [D, .], of the fixed vector
    Var<T> first_state;           // [D, H] s_0
    Previous previous;
  };
  // y: null if the words are choices.
  const Encoded& encoded(Tape<T>& tape, const Batch& data, const Sentences* y) const;
  Encoded encode(Tape<T>& tape, const Batch& data, const Sentences* y) const;
  void read(const Batch& batch, Episode<T>& episode) const;
  void write(const Batch& batch, Episode<T>& episode) const;
  // At step t = 1 ..
  Var<T> scores(const Encoded& x, const States<T>& states, Var<T> s, int t) const;
  Var<T> in_window(const Encoded& x, const States<T>& states, Var<T> e, Var<T> s, int t) const;
  struct Posterior {
    Var<T> keys;                             // W_qk a_i + b_qk
    typename TargetReading<T>::Read target;  // W_qy r_t
  };
  Var<T> posterior_scores(const Encoded& x, const Posterior& q, const States<T>& states, Var<T> s, int t) const;

  Structure structure_;
  std::string feed_, reading_, readout_;
  bool context_first_, attends_, null_, writes_;
  std::string reward_;
  int heads_, picks_, longest_, bos_, eos_;
  std::size_t begins_from_;  // s_0 reads the end's numbers from here on
  Dropout drop_annotation_{}, drop_readout_{};
  Embedding<T> source_words_, target_words_;
  BiLstm<T> encoder_;
  RecurrentUnit<T> decoder_;
  Linear<T> initial_, context_, readout_state_, readout_context_, readout_word_, output_;
  Linear<T> posterior_key_, posterior_state_;
  TargetReading<T> posterior_target_;
  PositionScores<T> scores_;
  LocalWindow<T> window_;
  const Parameter<T>*null_vector_ = nullptr, *posterior_vector_ = nullptr;
};

// With the given words, or its own.
template <class T>
void Translator<T>::read(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  Sentences sentences(episode, distinct, longest_, eos_);          // y_t
  const Encoded& x = encoded(tape, distinct.batch(), &sentences);  // a_i
  auto s = decoder_.start(x.first_state);
  auto y = x.previous;  // y_{t-1}
  std::optional<Posterior> q;

  Unrolled<T> readouts(episode);
  Var<T> fed;              // W_ctx u_{t-1}, feed=attentional
  const auto emit = [&] {  // the words of all steps at once, or of one step if it feeds the next
    // u_t = tanh(W_s s_t + b_s + W_z z_t + W_y E_y y_{t-1}), loss_t = -log softmax(W_o u_t + b_o)[y_t]
    const auto z = attends_ ? readouts.read(x.to_readout) : Sum<T>(x.to_readout, readouts.each([](int b, int) { return b; }));
    const auto rest = [&] {
      if (!readout_state_.weight)  // readout=context: b_z
        return Sum<T>(tape.parameter(*readout_context_.bias), readouts.each([](int, int) { return 0; }));
      const auto state = readouts.after(readout_state_(readouts.state()));
      return readout_word_.weight ? state + Sum<T>(y.to_readout, readouts.each([&](int b, int t) { return y.row(b, t); }))
                                  : state;
    };
    const auto u = squashed(rest() + z);
    if (feed_ == "attentional") fed = context_(u);
    const Var<T> kept = drop_readout_(u, distinct.batch(), readouts.each([](int b, int) { return b; }));
    return readouts.classify(kept, output_, readouts.each([&](int b, int t) { return sentences.label(b, t); }));
  };

  auto states = States<T>(episode, distinct).only(sentences.have(0));
  for (int t = 0; t < sentences.steps(); ++t) {
    // s_t = LSTM(E_y y_{t-1} + W_ctx z, s_{t-1}) with the context z that `of` reads
    const auto step = [&](const States<T>& of) {
      const Sum<T> word(y.to_gates, of.each([&](int b) { return y.row(b, t); }));
      const auto context = fed ? of.after(fed) : attends_ ? of.read(x.to_gates) : Sum<T>(x.to_gates, of.example());
      return decoder_.step(of, word + context, s);
    };
    s = context_first_ ? decoder_.after(states, s) : step(states);  // s_{t-1} or s_t
    const auto scored = s.h;

    auto i = states.next_step();
    if (attends_) {  // i_t ~ softmax(e_t)
      ItemSite<T> site{.name = structure_.sites[0].name,
                       .logits = scores(x, states, s.h, t + 1),
                       .items = x.heads.items(),
                       .state = s.h,
                       .columns = heads_,
                       .picks = picks_};
      if (structure_.posterior)
        site.posterior = [&] {
          if (!q) q = {x.heads.keys(posterior_key_(x.states)), posterior_target_(tape, distinct.batch())};
          return posterior_scores(x, *q, states, s.h, t);
        };
      i = states.choose(site);
    }
    // The states whose context the state reads: z_t, its mean, u_t or none.
    const auto read = [&] {
      if (!attends_ || feed_ == "none") return states.next_step();
      return feed_ == "soft" ? states.expecting(i) : feed_ == "sampled" ? i : i.next_step();
    };
    std::optional<States<T>> next;
    if (context_first_) {
      next = read();
      s = step(*next);
      next = next->next_step();
    }
    if (context_first_ && feed_ == "sampled" && readout_ != "maxout")
      readouts.add_after(t, s.h, i);
    else
      readouts.add(t, readout_ == "maxout" ? scored : s.h, i);

    if (!sentences.known() || feed_ == "attentional") {
      auto words = emit();
      readouts.clear();
      if (!sentences.known()) {
        if (sentences.over(words)) break;
        y = previous(tape, distinct.size(), std::move(words));
      }
    }
    if (t + 1 == sentences.steps()) break;
    if (feed_ == "attentional") s = decoder_.after(i, s);  // as u_t
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
  const Encoded& x = encoded(tape, data, nullptr);  // a_i
  const std::vector<int> first(distinct.size(), bos_);
  auto s = decoder_.start(x.first_state);
  Var<T> y = target_words_(tape, std::span<const int>(first)), z;
  if (!attends_ && x.to_gates) z = x.to_gates;  // of every step
  WordChoices<T> words(tape, sentence_rewards<T>(reward_, answers_of(data), eos_, longest_), distinct.size(), labels, eos_);

  States<T> states(episode, distinct);
  for (int t = 1; t <= longest_; ++t) {
    y = states.after(y);
    const auto step = [&](const States<T>& of, Sum<T> word, Sum<T> context) {  // s_t
      s = decoder_.step(of, word + std::move(context), s);
    };
    if (context_first_)
      s = decoder_.after(states, s);  // s_{t-1}
    else
      step(states, decoder_.project(y), z ? states.after(z) : Sum<T>());
    const auto scored = s.h;

    auto i = states.next_step();
    if (attends_) {  // i_t ~ softmax(e_t)
      std::vector<int> count;
      for (int head : x.heads.of(states.example())) count.push_back(x.heads.items().count(head));
      i = states.choose(ItemSite<T>{.name = structure_.sites[0].name,
                                    .logits = scores(x, states, s.h, t),
                                    .items = x.heads.items(),
                                    .state = s.h,
                                    .columns = heads_,
                                    .options = words.limited(std::move(count))});
      words.follow(i);
      if (feed_ == "sampled") z = i.read(x.to_gates);
      if (feed_ == "soft") z = i.after(Var<T>(states.expecting(i).read(x.to_gates)));
    } else if (z) {
      z = i.after(states.after(z));
    }
    y = i.after(y);
    if (context_first_)
      step(i, decoder_.project(y), z);
    else
      s = decoder_.after(i, s);

    const auto rest = [&] {  // of u_t, but for W_z z_t
      if (!readout_state_.weight) return Sum<T>(tape.parameter(*readout_context_.bias), std::vector<int>(i.size(), 0));
      const auto state = readout_ == "maxout" ? i.after(readout_state_(scored)) : Sum<T>(readout_state_(s.h));
      return readout_word_.weight ? state + readout_word_(y) : state;
    };
    const auto context = attends_ ? i.read(x.to_readout) : Sum<T>(x.to_readout, i.example());
    const auto u = squashed(rest() + context);
    if (feed_ == "attentional") z = context_(u);
    const auto of = i.each([](int b) { return b; });
    const auto w = words.choose(  // y_t ~ softmax(W_o u_t + b_o)
        t, i, {.name = word_site_name, .logits = output_(drop_readout_(u, data, of)), .items = words.items(), .state = s.h});
    y = w.of_table(tape.parameter(*target_words_.weight));
    s = decoder_.after(w, s);
    if (z) z = w.after(z);
    states = words.go_on(w);
  }
}

// e_t of every head
template <class T>
Var<T> Translator<T>::scores(const Encoded& x, const States<T>& states, Var<T> s, int t) const {
  return in_window(x, states, scores_(x.heads, x.keys, states.example(), s), s, t);
}
template <class T>
Var<T> Translator<T>::in_window(const Encoded& x, const States<T>& states, Var<T> e, Var<T> s, int t) const {
  return window_ ? window_(e, s, states.each([&](int b) { return x.length[b]; }), t) : e;
}
template <class T>
Var<T> Translator<T>::posterior_scores(const Encoded& x, const Posterior& q, const States<T>& states, Var<T> s, int t) const {
  const Sum<T> target(q.target.rows, states.each([&](int b) { return q.target.row(b, t); }));  // W_qy r_t
  const Var<T> query = Sum<T>(posterior_state_(s)) + target;
  const auto v = x.heads.queries(s.tape->parameter(*posterior_vector_));
  const auto all =
      additive_scores(x.heads.queries(query), q.keys, v, std::span<const int>(x.heads.of(states.example())), x.heads.items());
  return in_window(x, states, all, s, t + 1);
}

template <class T>
auto Translator<T>::encoded(Tape<T>& tape, const Batch& data, const Sentences* y) const -> const Encoded& {
  const bool known = y && y->known();
  const auto words = data.examples() * static_cast<std::size_t>(known ? y->steps() : y ? 1 : 0);
  return tape.template shared<Encoded>(
      this,
      [&](const Encoded& x) {
        return x.source.data == data.ints("source").data && x.dropped == dropped(data) &&
               x.length == data.ints("source_length").data && x.previous.words.index.size() == words &&
               (known ? x.target.data == y->target().data : x.target.data.empty());
      },
      [&] { return encode(tape, data, y); });
}

template <class T>
auto Translator<T>::encode(Tape<T>& tape, const Batch& data, const Sentences* y) const -> Encoded {
  Encoded x;
  x.source = data.ints("source");
  x.length = data.ints("source_length").data;
  x.dropped = dropped(data);
  if (y && y->known()) x.target = y->target();
  const Reading read(x.source, x.length, reading_);
  const auto [a, ends] = encoder_.forward ? encoder_(tape, source_words_, read.words(), read.count())
                                          : word_states(tape, source_words_, read.words(), read.count());
  x.first_state = tanh(initial_(begins_from_ ? slice_columns(ends, begins_from_, ends.cols() - begins_from_) : ends));
  if (y) x.previous = previous(tape, x.length.size(), y->before(bos_));
  if (!attends_) {
    x.to_readout = readout_context_(ends);
    if (feed_ != "none") x.to_gates = context_(ends);
    return x;
  }
  auto count = x.length;
  for (int& n : count) n += null_;
  std::vector<int> whose;  // the example of each position
  for (std::size_t b = 0; b < count.size(); ++b) whose.insert(whose.end(), count[b], static_cast<int>(b));
  const auto states = read.last(a, null_ ? tape.parameter(*null_vector_) : Var<T>{});
  x.states = drop_annotation_(states, data, whose);
  x.heads = Heads(Items(count), heads_);
  const auto values = [&](const Linear<T>& of) {
    return shares(x.heads.values(x.states, tape.parameter(*of.weight)), x.heads.items(), picks_);
  };
  x.to_readout = values(readout_context_);
  x.keys = scores_.keys(x.heads, x.states);
  if (feed_ == "soft" || feed_ == "sampled") x.to_gates = values(context_);
  return x;
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
    .parameters = {ParameterInfo::integer("embedding", 32, 1, 4096, "width of the word embeddings"),
                   ParameterInfo::integer("hidden", 32, 1, 4096, "units of the decoder and of each encoder direction"),
                   score_parameter(),
                   local_parameter(),
                   window_parameter(),
                   ParameterInfo::integer("heads", 1, 1, 64, "positions chosen at once; must divide hidden"),
                   ParameterInfo::integer("picks", 1, 1, 1000,
                                          "positions that a step and head chooses; their annotations are averaged"),
                   ParameterInfo::choice("feed", "none", {"none", "soft", "sampled", "attentional"},
                                         "context in the decoder's next state; attentional: the readout u_t (input feeding)"),
                   ParameterInfo::choice("order", "state_first", {"state_first", "context_first"},
                                         "state_first: scores read the step's new state, and the next state reads the context; "
                                         "context_first: scores read the last state, and the new state reads the context"),
                   ParameterInfo::choice(
                       "attention", "source", {"source", "none"},
                       "source: a choice per word; none: no choice, every word reads the encoder's last state"),
                   ParameterInfo::choice("encoder", "bidirectional", {"bidirectional", "forward", "none"},
                                         "directions of the encoder; none: annotations are word embeddings"),
                   unit_parameter(),
                   ParameterInfo::choice("start", "both", {"both", "backward"},
                                         "first state of the decoder: from both ends of the encoder, or from b_1 alone"),
                   ParameterInfo::choice("readout", "all", {"all", "context", "state", "maxout"},
                                         "a word depends on state, context and previous word; on the context alone; on state "
                                         "and context; or on all by a layer of maxout"),
                   ParameterInfo::choice("source", "forward", {"forward", "reversed", "twice"},
                                         "order in which the encoder reads the source"),
                   target_reading_parameter(),
                   words_parameter(),
                   reward_parameter(),
                   ParameterInfo::flag("null", false, "add a learned position for words without a source word"),
                   ParameterInfo::real("dropout", 0, 0, 1, "share of the entries of a_i and u_t dropped in training").below()},
    .needs = {"source_vocabulary", "target_vocabulary", "source_length", "target_length", "bos", "eos"},
};
HARDGRAD_MODEL(Translator, entry)

}  // namespace
}  // namespace hardgrad::models::translator
