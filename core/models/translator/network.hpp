// The layers of the translator, and what its steps read of the sentences. Equations, names and shapes: translator.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/models/parts/bilstm.hpp"
#include "core/models/parts/dropout.hpp"
#include "core/models/parts/heads.hpp"
#include "core/models/parts/means.hpp"
#include "core/models/parts/posterior_scores.hpp"
#include "core/models/parts/sentences.hpp"
#include "core/models/parts/words.hpp"
#include "core/models/translator/config.hpp"

namespace hardgrad::models::translator {

/// Embedded words y_{t-1} of D examples, of all steps or of one. Each distinct word is projected once.
template <class T>
struct Previous {
  std::size_t examples;  // D
  Words<T> words;        // [T D] or [D]
  Var<T> to_gates, to_readout;
  int row(int example, int t) const { return words.row(t * examples + example); }
};

/// Values that depend on the sentences only. Equal examples are encoded once; D examples are distinct.
template <class T>
struct Encoded {
  Array<int> source, target = zeros<int>({0});  // target: empty unless fed with the truth
  std::vector<int> length;                      // of the source
  std::vector<int> dropped;                     // keys of dropout
  Heads heads;                                  // the positions of every head
  Var<T> states, keys;                          // a_i [positions, C], k_i
  Var<T> to_gates, to_readout;  // W_ctx a_i (if a context is fed), W_z a_i; attention=none: [D, .], of the fixed vector
  Var<T> first_state;           // [D, H] s_0
  Previous<T> previous;
};

template <class T>
struct Network {
  Network(ParameterSet<T>& set, const TranslatorConfig& setup, Key init) : config(setup) {
    const std::size_t read = config.H / config.readout->pooled;  // numbers of u_t
    drop_annotation = {"annotation", 0, config.dropout, config.C};
    drop_readout = {"readout", 1, config.dropout, read};
    source_words = {set, "encoder.embedding", config.source_vocabulary, config.E, init};
    if (config.encoder != Directions::none)
      encoder = {set, "encoder", config.E, config.H, init, config.encoder == Directions::bidirectional, config.unit};
    if (config.attends) {
      const std::size_t M = config.heads;
      position_scores = {set, config.score, config.C, config.H, static_cast<std::size_t>(config.positions), M, init};
      window = {set, config.window, config.H, config.heads, init};
      if (config.null) null_vector = &uniform_vector(set, "attention.null.weight", config.C, init);
    }
    target_words = {set, "decoder.embedding", config.target_vocabulary, config.E, init};
    initial = {set, "decoder.initial", config.C - begins_from(), config.H, init};
    decoder = {set, config.unit == UnitKind::gated ? "decoder.gated" : "decoder.lstm", config.E, config.H, init, config.unit};
    if (config.feed != Feed::none)
      fed = {set,  "decoder.context", config.feed == Feed::attentional ? read : config.heads * config.C, decoder.gates(), init,
             false};
    readout = {set, *config.readout, config.H, config.heads * config.C, config.E, config.target_vocabulary, init};
    if (config.inferred) q = {set, "key", config.C, config.target_vocabulary, config.E, config.H, init, config.posterior};
  }

  /// Of the batch, computed once; `y` is null if the words are choices.
  const Encoded<T>& encoded(Tape<T>& tape, const Batch& data, const Sentences* y) const;
  Previous<T> previous(Tape<T>& tape, std::size_t examples, std::vector<int> words) const {
    Previous<T> y{examples, Words<T>(tape, target_words, std::move(words)), {}, {}};
    y.to_gates = decoder.project(y.words.rows);
    y.to_readout = readout.project(y.words.rows);
    return y;
  }
  /// e_t of every head, of states s at step t = 1 ..
  Var<T> scores(const Encoded<T>& x, const States<T>& states, Var<T> s, int t) const {
    return in_window(x, states, position_scores(x.heads, x.keys, states.example(), s), s, t);
  }
  /// The same scores of the posterior, which read `sentences`.
  Var<T> posterior_scores(const Encoded<T>& x, const typename PosteriorScores<T>::Read& sentences, const States<T>& states,
                          Var<T> s, int t) const {
    return in_window(x, states, q(sentences, states, s, t - 1), s, t);
  }

  const TranslatorConfig config;
  Dropout drop_annotation{}, drop_readout{};
  Embedding<T> source_words, target_words;
  BiLstm<T> encoder;
  PositionScores<T> position_scores;
  LocalWindow<T> window;
  const Parameter<T>* null_vector = nullptr;
  RecurrentUnit<T> decoder;
  Linear<T> initial, fed;  // W_init, b_init; W_ctx
  Readout<T> readout;
  PosteriorScores<T> q;

 private:
  std::size_t begins_from() const {
    return config.start == Start::backward ? config.H : 0;
  }  // s_0 reads the end's numbers from here on
  Encoded<T> encode(Tape<T>& tape, const Batch& data, const Sentences* y) const;
  Var<T> in_window(const Encoded<T>& x, const States<T>& states, Var<T> e, Var<T> s, int t) const {
    return window ? window(e, s, states.each([&](int b) { return x.length[b]; }), t) : e;
  }
  std::vector<int> dropped(const Batch& data) const {
    return drop_readout.in(data) ? data.ints("dropout").storage() : std::vector<int>{};
  }
};

template <class T>
const Encoded<T>& Network<T>::encoded(Tape<T>& tape, const Batch& data, const Sentences* y) const {
  const bool known = y && y->known();
  const auto words = data.examples() * static_cast<std::size_t>(known ? y->steps() : y ? 1 : 0);
  return tape.template shared<Encoded<T>>(
      this,
      [&](const Encoded<T>& x) {
        return x.source == data.ints("source") && x.dropped == dropped(data) &&
               x.length == data.ints("source_length").storage() && x.previous.words.index.size() == words &&
               (known ? x.target == y->target() : x.target.size() == 0);
      },
      [&] { return encode(tape, data, y); });
}

template <class T>
Encoded<T> Network<T>::encode(Tape<T>& tape, const Batch& data, const Sentences* y) const {
  Encoded<T> x;
  x.source = data.ints("source");
  x.length = data.ints("source_length").storage();
  x.dropped = dropped(data);
  if (y && y->known()) x.target = y->target();
  const Reading reads(x.source, x.length, config.source);
  const auto [a, ends] = encoder.forward ? encoder(tape, source_words, reads.words(), reads.count())
                                         : word_states(tape, source_words, reads.words(), reads.count());
  x.first_state = tanh(initial(begins_from() ? slice_columns(ends, begins_from(), ends.cols() - begins_from()) : ends));
  if (y) x.previous = previous(tape, x.length.size(), y->before(config.bos));
  if (!config.attends) {
    x.to_readout = linear(ends, tape.parameter(*readout.context().weight));
    if (config.feed != Feed::none) x.to_gates = fed(ends);
    return x;
  }
  auto count = x.length;
  for (int& n : count) n += config.null;
  std::vector<int> whose;  // the example of each position
  for (std::size_t b = 0; b < count.size(); ++b) whose.insert(whose.end(), count[b], static_cast<int>(b));
  const auto states = reads.last(a, config.null ? tape.parameter(*null_vector) : Var<T>{});
  x.states = drop_annotation(states, data, whose);
  x.heads = Heads(Items(count), config.heads);
  const auto values = [&](const Linear<T>& of) {
    return shares(x.heads.values(x.states, tape.parameter(*of.weight)), x.heads.items(), config.subset_size);
  };
  x.to_readout = values(readout.context());
  x.keys = position_scores.keys(x.heads, x.states);
  if (config.feed == Feed::soft || config.feed == Feed::sampled) x.to_gates = values(fed);
  return x;
}

}  // namespace hardgrad::models::translator
