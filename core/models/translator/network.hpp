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
#include "core/models/translator/setup.hpp"

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
  Network(ParameterSet<T>& set, const Setup& setup, Key init) : is(setup) {
    const std::size_t read = is.H / is.readout->pooled;  // numbers of u_t
    drop_annotation = {"annotation", 0, is.dropout, is.C};
    drop_readout = {"readout", 1, is.dropout, read};
    source_words = {set, "encoder.embedding", is.source_vocabulary, is.E, init};
    if (is.encoder != Directions::none)
      encoder = {set, "encoder", is.E, is.H, init, is.encoder == Directions::bidirectional, is.unit};
    if (is.attends) {
      const std::size_t M = is.heads;
      position_scores = {set, is.score, is.C, is.H, static_cast<std::size_t>(is.positions), M, init};
      window = {set, is.window, is.H, is.heads, init};
      if (is.null) null_vector = &uniform_vector(set, "attention.null.weight", is.C, init);
    }
    target_words = {set, "decoder.embedding", is.target_vocabulary, is.E, init};
    initial = {set, "decoder.initial", is.C - begins_from(), is.H, init};
    decoder = {set, is.unit == UnitKind::gated ? "decoder.gated" : "decoder.lstm", is.E, is.H, init, is.unit};
    if (is.feed != Feed::none)
      fed = {set, "decoder.context", is.feed == Feed::attentional ? read : is.heads * is.C, decoder.gates(), init, false};
    readout = {set, *is.readout, is.H, is.heads * is.C, is.E, is.target_vocabulary, init};
    if (is.inferred) q = {set, "key", is.C, is.target_vocabulary, is.E, is.H, init, is.posterior};
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

  const Setup is;
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
    return is.start == Start::backward ? is.H : 0;
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
  const Reading reads(x.source, x.length, is.source);
  const auto [a, ends] = encoder.forward ? encoder(tape, source_words, reads.words(), reads.count())
                                         : word_states(tape, source_words, reads.words(), reads.count());
  x.first_state = tanh(initial(begins_from() ? slice_columns(ends, begins_from(), ends.cols() - begins_from()) : ends));
  if (y) x.previous = previous(tape, x.length.size(), y->before(is.bos));
  if (!is.attends) {
    x.to_readout = linear(ends, tape.parameter(*readout.context().weight));
    if (is.feed != Feed::none) x.to_gates = fed(ends);
    return x;
  }
  auto count = x.length;
  for (int& n : count) n += is.null;
  std::vector<int> whose;  // the example of each position
  for (std::size_t b = 0; b < count.size(); ++b) whose.insert(whose.end(), count[b], static_cast<int>(b));
  const auto states = reads.last(a, is.null ? tape.parameter(*null_vector) : Var<T>{});
  x.states = drop_annotation(states, data, whose);
  x.heads = Heads(Items(count), is.heads);
  const auto values = [&](const Linear<T>& of) {
    return shares(x.heads.values(x.states, tape.parameter(*of.weight)), x.heads.items(), is.subset_size);
  };
  x.to_readout = values(readout.context());
  x.keys = position_scores.keys(x.heads, x.states);
  if (is.feed == Feed::soft || is.feed == Feed::sampled) x.to_gates = values(fed);
  return x;
}

}  // namespace hardgrad::models::translator
