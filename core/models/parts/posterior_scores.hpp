// Scores of a learned posterior q(i_t | x, y) over the places i where a network may attend while it writes y:
//   v_q . tanh(W_qs s_t + W_qy r_t + W_qk a_i + b_qk)          r_t [.]: TargetReading; a_i [C] annotations, s_t [H]
// With several heads the H numbers are divided among them (heads.hpp).
//
// Parameters: posterior.<key>.{weight [H, C], bias [H]} (W_qk, b_qk), posterior.state.weight [H, H] (W_qs),
//   posterior.{embedding.weight, word.weight (W_qy)} and, for the whole sentence, posterior.sentence.* (TargetReading),
//   posterior.score.weight [1, H] (v_q)
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "core/models/model.hpp"
#include "core/models/parts/bilstm.hpp"
#include "core/models/parts/heads.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad {

// The part of the target sentence y that a posterior q(z_t | x, y) reads at step t: the word of the step, or the sentence.
//
//   word      r_t = E y_t
//   sentence  r_t = [f_t; b_t], a BiLSTM of `hidden` units per direction over E y_1 .. E y_T (Deng et al. 2018, sec. 4)
// Parameters: <name>.embedding.weight [V, E], <name>.word.weight (W) [H, E], or [H, 2H] for the sentence, and
// <name>.sentence.{forward,backward}.* (bilstm.hpp).

enum class TargetPart { word, sentence };
inline constexpr Named<TargetPart> target_parts[] = {{"word", TargetPart::word}, {"sentence", TargetPart::sentence}};

/// The setting `posterior` of a model with such a posterior.
inline void target_part_field(Fields& field, TargetPart& part) {
  field(part, "posterior", target_parts,
        "a learned posterior reads the target's word of the step, or the whole sentence by a BiLSTM");
}

template <class T>
class TargetReading {
 public:
  TargetReading() = default;
  TargetReading(ParameterSet<T>& set, const std::string& name, std::size_t vocabulary, std::size_t embedding,
                std::size_t hidden, Key init, TargetPart part)
      : words_(set, name + ".embedding", vocabulary, embedding, init) {
    const bool sentence = part == TargetPart::sentence;
    if (sentence) sentence_ = {set, name + ".sentence", embedding, hidden, init};
    product_ = {set, name + ".word", sentence ? 2 * hidden : embedding, hidden, init, false};
  }

  /// W r_t of all words of the target sentences of a batch.
  struct Read {
    Var<T> rows;  ///< [., H]
    Items words;
    std::vector<int> index;  ///< [words] the row of each word, sentence by sentence
    int row(int example, int t) const { return index[words.row(example, t)]; }
  };
  /// From the fields `target` [B, T] and `target_length` [B].
  Read operator()(Tape<T>& tape, const Batch& data) const {
    const auto& target = data.ints("target");
    Read read{{}, Items(data.ints("target_length").storage()), {}};
    if (sentence_.forward) {
      read.index.resize(read.words.total());
      std::iota(read.index.begin(), read.index.end(), 0);
      read.rows = product_(sentence_(tape, words_, target, read.words).states);
      return read;
    }
    Words<T> distinct(tape, words_, target, read.words);
    read.rows = product_(distinct.rows);
    read.index = std::move(distinct.index);
    return read;
  }

 private:
  Embedding<T> words_;
  BiLstm<T> sentence_;
  Linear<T> product_;
};

template <class T>
class PosteriorScores {
 public:
  PosteriorScores() = default;
  /// V target words, embedded by E numbers. `part`: what r_t reads of the target.
  PosteriorScores(ParameterSet<T>& set, const std::string& key, std::size_t C, std::size_t V, std::size_t E, std::size_t H,
                  Key init, TargetPart part)
      : key_(set, "posterior." + key, C, H, init),
        state_(set, "posterior.state", H, H, init, false),
        target_(set, "posterior", V, E, H, init, part),
        vector_(&uniform_vector(set, "posterior.score.weight", H, init)) {}

  /// Values of a batch that do not depend on choices.
  struct Read {
    Heads heads;
    Var<T> keys;                             ///< W_qk a_i + b_qk of the heads' places
    typename TargetReading<T>::Read target;  ///< W_qy r_t
  };
  Read read(const Heads& heads, Var<T> annotations, const Batch& data) const {
    const auto keys = heads.keys(key_(annotations));
    return {heads, keys, target_(*annotations.tape, data)};
  }
  /// [N M, places] of states s [N, H] at step t = 0 ..
  Var<T> operator()(const Read& x, const States<T>& states, Var<T> s, int t) const {
    const Sum<T> target(x.target.rows, states.each([&](int b) { return x.target.row(b, t); }));
    const Var<T> query = Sum<T>(state_(s)) + target;
    const auto v = x.heads.queries(s.tape->parameter(*vector_));
    return additive_scores(x.heads.queries(query), x.keys, v, std::span<const int>(x.heads.of(states.example())),
                           x.heads.items());
  }

 private:
  Linear<T> key_, state_;
  TargetReading<T> target_;
  const Parameter<T>* vector_ = nullptr;
};

}  // namespace hardgrad
