// Show, attend and tell: a decoder that attends to one cell of a picture before each word of its caption.
//
// Cells a_1..a_L [D] of the picture; words y_1..y_T, where y_T is the end of the caption; y_0 = bos. H = hidden, E = embedding.
//   h_0    = tanh(W_h abar + b_h), c_0 = tanh(W_c abar + b_c), abar = (1 / L) sum_i a_i
//   e_ti   = v . tanh(W_a a_i + b_a + W_q h_{t-1})                   f_att
//   beta_t = sig(w_b . h_{t-1} + b_b)                                gate=true, else 1
//   z_t    = beta_t a_{i_t}, i_t ~ softmax(e_t)                      the choice; relaxed weights w: beta_t sum_i w_i a_i
//   (i, f, o, g) = (sig, sig, sig, tanh)(T_y E y_{t-1} + T_h h_{t-1} + T_z z_t + b)
//   c_t    = f c_{t-1} + i g,  h_t = o tanh(c_t)
//   loss_t = -log softmax(L_o (E y_{t-1} + L_h h_t + L_z z_t) + b_o)[y_t]
// picks=k > 1: a subset of k cells with the logits e_t (choice/subsets.hpp); z_t = beta_t times the mean of their a_i.
// doubly_stochastic = lambda > 0 adds lambda sum_i (1 - sum_t softmax(e_t)_i)^2 to the loss of each caption. The penalty uses
// the model's own probabilities with every handler.
// Refused: picks > 1 with words=sampled or doubly_stochastic; doubly_stochastic with words=sampled; more picks than cells; with
// words=sampled a posterior; with words=sampled or doubly_stochastic targets that need the likelihood of the caption.
// words=sampled: y_t is a choice, too, of site `word`, V options: y_t ~ softmax(L_o (..) + b_o), until the end of the caption or
// the limit. The loss is - reward(y_1 .. y_T, the caption) (parts/metric_rewards.hpp), as in self-critical training (Rennie et
// al. 2017). Decoded freely, the network is as with words=given.
// dropout drops entries of the vector that L_o multiplies, in training; all steps of an example lose the same entries.
//
// The cells are the task's `features`, or the output of a small network on an image of 3 colours, learned with the rest:
//   a = relu(W_2 * relu(W_1 * image + b_1) + b_2 + P)    * are convolutions without overlap, of 4 x 4 pixels and 2 x 2 places
// So a cell sees only its own 8 x 8 pixels, and P [L, D] adds its place. To name an object the decoder must attend to its cell.
// Posterior (if asked for): q(i_t | picture, y) = softmax_i of v_q . tanh(W_qs h_{t-1} + W_qy r_t + W_qk a_i + b_qk).
//   posterior=word      r_t = E_q y_t
//   posterior=sentence  r_t is the state at y_t of a BiLSTM over E_q y_1 .. E_q y_T
//
// Parameters (LSTM gates in the order i, f, g, o; V words; C channels, D features):
//   encoder.first.{weight [C, 4 4 3], bias [C]}, encoder.second.{weight [D, 2 2 C], bias [D]}, encoder.place.weight [L, D]
//   attention.cell.{weight [H, D], bias [H]}, attention.query.weight [H, H], attention.score.weight [1, H]
//   decoder.embedding.weight [V, E], decoder.{h,c}.{weight [H, D], bias [H]}, decoder.context.weight [4H, D],
//   decoder.lstm.{input.weight [4H, E], recurrent.weight [4H, H], bias [4H]}, decoder.gate.{weight [1, H], bias [1]} (gate)
//   readout.state.weight [E, H], readout.context.weight [E, D], output.{weight [V, E], bias [V]}
//   posterior.*: parts/posterior_scores.hpp, with the key posterior.cell
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/images.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/models/parts/dropout.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/means.hpp"
#include "core/models/parts/metric_rewards.hpp"
#include "core/models/parts/posterior_scores.hpp"
#include "core/models/parts/sentences.hpp"
#include "core/models/parts/unrolled.hpp"
#include "core/models/parts/word_choices.hpp"

namespace hardgrad::models::captioner {
namespace {

constexpr std::size_t colours = 3, first_side = 4, second_side = 2, cell_side = first_side * second_side;

struct Config {
  int embedding = 32, hidden = 64, channels = 16, features = 32, subset_size = 1;
  bool gate = false;
  double doubly_stochastic = 0;
  TargetPart posterior = TargetPart::word;
  WordsConfig words;
  double dropout = 0;

  void declare(Fields& field) {
    field(embedding, "embedding", 1, 4096, "width of the word embeddings");
    field(hidden, "hidden", 1, 4096, "units of the decoder");
    field(channels, "channels", 1, 4096, "channels of the encoder's first convolution (images)");
    field(features, "features", 1, 4096, "numbers per cell (images)");
    field(subset_size, "picks", 1, 1000, "cells that a step chooses; their contexts are averaged");
    field(gate, "gate", "scale the context by beta, a function of the state");
    field(doubly_stochastic, "doubly_stochastic", 0, 1000,
          "weight lambda of the penalty for cells that are not attended to exactly once");
    target_part_field(field, posterior);
    words.declare(field);
    field(dropout, "dropout", 0, 1, "share of the entries before the output layer dropped in training").below();
  }
};

template <class T>
class Captioner final : public Model<T>, public AnswerSampler {
 public:
  Captioner(const Config& config, const Blueprint& b)
      : cells_(b.dimensions.at("cells")),
        subset_size_(config.subset_size),
        gated_(config.gate),
        writes_(config.words.words == WordSource::sampled),
        reward_(*config.words.reward),
        longest_(b.dimensions.at("target_length")),
        penalty_(static_cast<T>(config.doubly_stochastic)),
        bos_(b.dimensions.at("bos")),
        eos_(b.dimensions.at("eos")) {
    if (subset_size_ > 1 && writes_) throw UsageError("captioner: words=sampled chooses one cell beside a word; give picks=1");
    if (subset_size_ > static_cast<int>(cells_))
      throw UsageError(fmt::format("captioner: picks={} is more than the {} cells there are", subset_size_, cells_));
    if (subset_size_ > 1 && penalty_ > 0)
      throw UsageError("captioner: doubly_stochastic counts one cell a word: give picks=1, or drop it");
    const auto& dimensions = b.dimensions;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    const std::size_t E = config.embedding, H = config.hidden, C = config.channels;
    const std::size_t V = dimensions.at("target_vocabulary");
    if (writes_ && penalty_ > 0)
      throw UsageError("captioner: doubly_stochastic is for the given caption: take doubly_stochastic=0 or words=given");
    dropout_ = {"readout", 0, config.dropout, E};
    const auto dimension = dimensions.find("features");
    const std::size_t D = dimension != dimensions.end() ? dimension->second : config.features;
    auto& set = this->parameters_;
    if (dimension == dimensions.end()) {
      height_ = dimensions.at("height");
      width_ = dimensions.at("width");
      if (height_ % cell_side || width_ % cell_side || height_ / cell_side * (width_ / cell_side) != cells_)
        throw UsageError("captioner: an image must consist of cells of 8 x 8 pixels, as many as the task declares");
      first_ = {set, "encoder.first", first_side * first_side * colours, C, init};
      second_ = {set, "encoder.second", second_side * second_side * C, D, init};
      place_ = {set, "encoder.place", cells_, D, init};
    }
    cell_ = {set, "attention.cell", D, H, init};
    query_ = {set, "attention.query", H, H, init, false};
    score_ = &uniform_vector(set, "attention.score.weight", H, init);
    words_ = {set, "decoder.embedding", V, E, init};
    first_h_ = {set, "decoder.h", D, H, init};
    first_c_ = {set, "decoder.c", D, H, init};
    context_ = {set, "decoder.context", D, 4 * H, init, false};
    decoder_ = {set, "decoder.lstm", E, H, init};
    if (gated_) gate_ = {set, "decoder.gate", H, 1, init};
    readout_state_ = {set, "readout.state", H, E, init, false};
    readout_context_ = {set, "readout.context", D, E, init, false};
    output_ = {set, "output", E, V, init};
    if (posterior && !writes_) posterior_ = {set, "cell", D, V, E, H, init, config.posterior};
    structure_.sites = {{.name = "cell",
                         .options = static_cast<int>(cells_),
                         .subset_size = subset_size_,
                         .times = longest_,
                         .state_width = static_cast<int>(H),
                         .scope = DependenceScope::later_choices,
                         .kind = subset_size_ > 1 ? SiteKind::subsets : SiteKind::categorical}};
    structure_.posterior = posterior && !writes_;
    if (penalty_ > 0) structure_.no_likelihood = "doubly_stochastic above 0";
    if (subset_size_ == 1) structure_.answer_sampler = this;  // dreams replay single options
    labels = static_cast<int>(V);
    places = longest_;
    if (writes_) {
      structure_.sites.push_back(word_site(labels, longest_, static_cast<int>(H), reward_));
      structure_.no_posterior = "its words are choices";
      structure_.rewards = true;
      structure_.no_likelihood = rewards_as_losses;
    }
    last_label = eos_;
  }

  const Structure& structure() const override { return structure_; }
  typename Model<T>::SiteExtent site_extent(const Batch& batch, std::size_t site, int example) const override {
    if (writes_) return extent_of_words<T>(structure_, site, static_cast<double>(cells_));
    return {{static_cast<int>(cells_)}, batch.ints("target_length")(example)};
  }
  void run(const Batch& batch, Episode<T>& episode) const override {
    if (writes_ && episode.feeding() == Feeding::teacher_forced)
      write(batch, episode);
    else
      read(batch, episode);
  }
  std::vector<std::pair<std::string, Array<double>>> dropout_factors(const Batch& batch) const override {
    std::vector<std::pair<std::string, Array<double>>> factors;
    dropout_.add_factors<T>(batch, factors);
    return factors;
  }
  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override {
    return with_sentences(batch, drawn, eos_);
  }

 private:
  // Values that depend on the picture only. Equal examples are encoded once.
  struct Picture {
    std::vector<double> given;
    Items cells;
    Var<T> a, keys;               // [cells, D], W_a a_i + b_a
    Var<T> to_gates, to_readout;  // T_z a_i, L_z a_i
    LstmState<T> first;           // h_0, c_0
  };
  const Picture& picture(Tape<T>& tape, const Batch& data) const;
  Picture look(Tape<T>& tape, const Batch& data) const;
  Var<T> encode(Tape<T>& tape, const Batch& data) const;
  void read(const Batch& batch, Episode<T>& episode) const;
  void write(const Batch& batch, Episode<T>& episode) const;
  // The question for i_t ~ softmax(e_t), e_ti = v . tanh(W_a a_i + b_a + W_q h_{t-1})
  ItemSite<T> cell(const Picture& x, const States<T>& states, Var<T> h) const {
    return {.name = "cell",
            .logits = additive_scores(query_(h), x.keys, h.tape->parameter(*score_), states.example(), x.cells),
            .items = x.cells,
            .state = h,
            .subset_size = subset_size_};
  }
  // beta_t values_{i_t}: the terms of z_t in the gates and in the readout; h_{t-1} of the states before i.
  Sum<T> seen(const States<T>& i, Var<T> h, Var<T> values) const {
    const auto z = i.read(values);
    return gated_ ? Sum<T>(scale_rows(Var<T>(z), Var<T>(i.after(sigmoid(gate_(h)))))) : z;
  }

  // h_t, c_t and the sum before the output layer, after the choice i and the word y_{t-1}, given as T_y y and as y
  Sum<T> step(const Picture& x, const States<T>& i, Sum<T> to_gates, Sum<T> y, LstmState<T>& s) const {
    const auto h = s.h;  // h_{t-1}
    s = lstm_step(decoder_, i, std::move(to_gates) + seen(i, h, x.to_gates), s);
    return std::move(y) + readout_state_(s.h) + seen(i, h, x.to_readout);
  }

  // y_{t-1} of all steps, or of one step if they are not known beforehand.
  struct Previous {
    Words<T> words;
    Var<T> to_gates;
  };
  Previous previous(Tape<T>& tape, std::vector<int> words) const {
    Previous y{Words<T>(tape, words_, std::move(words)), {}};
    y.to_gates = decoder_.project(y.words.rows);
    return y;
  }

  Structure structure_;
  std::size_t cells_, height_ = 0, width_ = 0;
  int subset_size_;
  bool gated_, writes_;
  const Reward& reward_;
  int longest_;
  Dropout dropout_{};
  T penalty_;
  int bos_, eos_;
  Linear<T> first_, second_, cell_, query_, first_h_, first_c_, context_, gate_, readout_state_, readout_context_, output_;
  PosteriorScores<T> posterior_;
  Embedding<T> place_, words_;
  Lstm<T> decoder_;
  const Parameter<T>* score_ = nullptr;
};

// With the given words, or its own.
template <class T>
void Captioner<T>::read(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  Sentences sentences(episode, distinct, longest_, eos_);  // y_t
  const Picture& x = picture(tape, distinct.batch());      // a_i
  auto y = previous(tape, sentences.before(bos_));         // y_{t-1}
  auto s = x.first;                                        // h, c
  std::optional<typename PosteriorScores<T>::Read> q;
  Var<T> covered;

  Unrolled<T> readouts(episode);
  const auto emit = [&] {  // -log softmax(L_o (...) + b_o)[y_t], of all steps, or of one step if its word is fed to the next
    const auto kept = dropout_(Var<T>(readouts.state()), distinct.batch(), readouts.each([](int b, int) { return b; }));
    return readouts.classify(kept, output_, readouts.each([&](int b, int t) { return sentences.label(b, t); }));
  };

  auto states = States<T>(episode, distinct).only(sentences.have(0));
  for (int t = 0; t < sentences.steps(); ++t) {
    s = {states.after(s.h), states.after(s.c)};
    const auto word = [&](int b) { return y.words.row(t * distinct.size() + b); };

    auto site = cell(x, states, s.h);
    if (structure_.posterior)
      site.posterior = [&] {
        if (!q) q = posterior_.read(Heads(x.cells, 1), x.a, distinct.batch());
        return posterior_(*q, states, s.h, t);
      };
    const auto i = states.choose(site);

    const auto spoken = i.each(word);
    const Var<T> u = step(x, i, Sum<T>(y.to_gates, spoken), Sum<T>(y.words.rows, spoken), s);
    readouts.add(t, u, i.next_step());  // the same states, one step later

    if (penalty_ > 0 && sentences.known() && !episode.observer()) {
      // lambda sum_i (1 - sum_t softmax(e_t)_i)^2, at the last word of a caption
      const std::vector<int> all(states.size(), static_cast<int>(cells_));
      const Var<T> alpha = probabilities(log_softmax(site.logits, std::span<const int>(all)));
      covered = i.after(covered ? add(Var<T>(states.after(covered)), alpha) : alpha);
      const auto over = i.next_step().only([&](int b) { return !sentences.have(t + 1)(b); });
      if (over.size() > 0)
        episode.cost(over.rows(), over.histories().on_rows(
                                      affine(row_sums(square(affine(Var<T>(over.after(covered)), T{-1}, T{1}))), penalty_)));
    }
    if (!sentences.known()) {
      auto words = emit();
      readouts.clear();
      if (sentences.over(words)) break;
      y = previous(tape, std::move(words));
    }
    if (t + 1 == sentences.steps()) break;
    states = i.next_step().as_observed().only(sentences.have(t + 1));
  }
  if (!readouts.empty()) emit();
}

// With words that are choices: each state has its own. y is E y_{t-1}.
template <class T>
void Captioner<T>::write(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const Distinct distinct(batch);
  const auto& data = distinct.batch();
  const Picture& x = picture(tape, data);  // a_i
  const std::vector<int> first(distinct.size(), bos_);
  Var<T> y = words_(tape, std::span<const int>(first));
  auto s = x.first;  // h, c
  WordChoices<T> words(tape, sentence_rewards<T>(reward_, answers_of(data), eos_, longest_), distinct.size(), labels, eos_);

  States<T> states(episode, distinct);
  for (int t = 1; t <= longest_; ++t) {
    s = {states.after(s.h), states.after(s.c)};
    y = states.after(y);
    auto site = cell(x, states, s.h);
    site.options = words.limited(std::vector<int>(states.size(), static_cast<int>(cells_)));
    const auto i = states.choose(site);
    words.follow(i);
    y = i.after(y);
    const Var<T> u = step(x, i, Sum<T>(decoder_.project(y)), Sum<T>(y), s);
    const auto of = i.each([](int b) { return b; });
    const auto w = words.choose(  // y_t ~ softmax(L_o u_t + b_o)
        t, i, {.name = word_site_name, .logits = output_(dropout_(u, data, of)), .items = words.items(), .state = s.h});
    y = w.of_table(tape.parameter(*words_.weight));
    s = {w.after(s.h), w.after(s.c)};
    states = words.go_on(w);
  }
}

// a = relu(W_2 * relu(W_1 * image + b_1) + b_2 + P), or the given features
template <class T>
Var<T> Captioner<T>::encode(Tape<T>& tape, const Batch& data) const {
  if (!place_.weight) {
    const auto x = constant_of(tape, data, "features");
    return reshape(x, x.cols() / cells_);
  }
  const auto of = [&](const Parameter<T>* parameter) { return tape.parameter(*parameter); };
  const Windows first{height_, width_, first_side, first_side};
  const Windows second{first.rows(), first.cols(), second_side, second_side};
  const auto image = reshape(constant_of(tape, data, "image"), colours);
  const auto seen = convolution(relu(convolution(image, first, of(first_.weight), of(first_.bias))), second, of(second_.weight),
                                of(second_.bias));
  std::vector<int> place(seen.rows());
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = static_cast<int>(i % cells_);
  return relu(Sum<T>(seen) + Sum<T>(of(place_.weight), std::move(place)));
}

template <class T>
auto Captioner<T>::look(Tape<T>& tape, const Batch& data) const -> Picture {
  Picture x;
  x.given = data.numbers(place_.weight ? "image" : "features").storage();
  x.cells = Items(data.examples(), cells_);
  x.a = encode(tape, data);
  x.keys = cell_(x.a);
  x.to_gates = shares(context_(x.a), x.cells, subset_size_);
  x.to_readout = shares(readout_context_(x.a), x.cells, subset_size_);
  const auto mean = means(x.a, x.cells);
  x.first = {tanh(first_h_(mean)), tanh(first_c_(mean))};
  return x;
}

template <class T>
auto Captioner<T>::picture(Tape<T>& tape, const Batch& data) const -> const Picture& {
  return tape.template shared<Picture>(
      this, [&](const Picture& known) { return known.given == data.numbers(place_.weight ? "image" : "features").storage(); },
      [&] { return look(tape, data); });
}

const ModelEntry entry = {
    .name = "captioner",
    .summary = "decoder that attends to one cell of a picture before each word of its caption",
    .paper =
        "Xu, Ba, Kiros, Cho, Courville, Salakhutdinov, Zemel & Bengio 2015, Show, attend and tell: neural image caption "
        "generation with visual attention",
    .dependence = "sequential",
    .kinds = "categorical, subset (picks>1)",
    .parameters = declared<Config>(),
    .needs = {"cells", "target_vocabulary", "target_length", "bos", "eos"},
};
HARDGRAD_MODEL(Captioner, entry)

}  // namespace
}  // namespace hardgrad::models::captioner
