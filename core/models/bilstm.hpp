// A bidirectional LSTM over padded token sequences; padding never reaches a state that is used.
//
//   x_i = E[token_i],  forward: f_i = LSTM(x_i, f_{i-1}),  backward: b_i = LSTM(x_i, b_{i+1}),  a_i = [f_i; b_i]
// with f and b zero before their first word; the backward direction starts at each sequence's own last word.
// Parameters: <name>.forward.* and <name>.backward.*, an Lstm of `hidden` units each.
#pragma once

#include <string>
#include <vector>

#include "core/autodiff/product.hpp"
#include "core/models/select.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

/// Embedded tokens: token n is row index[n] of `rows`. Where the vocabulary is smaller than the text, the table
/// itself, so that what is projected is projected once per word of the vocabulary.
template <class T>
struct Words {
  Var<T> rows;             ///< [N, E]
  std::vector<int> index;  ///< [tokens]

  Words(Tape<T>& tape, const Embedding<T>& embedding, std::vector<int> tokens) : index(std::move(tokens)) {
    if (embedding.weight->rows() <= index.size()) {
      rows = tape.parameter(*embedding.weight);
    } else {
      rows = embedding(tape, std::span<const int>(index));
      std::iota(index.begin(), index.end(), 0);
    }
  }
  Words() = default;
};

template <class T>
struct BiLstm {
  Lstm<T> forward, backward;
  struct Encoded {
    Var<T> states;  ///< [B L, 2 H] a_i, example-major; padded positions hold numbers nobody may use
    Var<T> ends;    ///< [B, 2 H] [f at the last word; b at the first]
  };

  BiLstm() = default;
  BiLstm(ParameterSet<T>& set, const std::string& name, std::size_t in, std::size_t hidden, Key init)
      : forward(set, name + ".forward", in, hidden, init),
        backward(set, name + ".backward", in, hidden, init) {}

  /// tokens [B, >= L], length [B] in [1, L]
  Encoded operator()(Tape<T>& tape, const Embedding<T>& embedding, const Array<int>& tokens,
                     std::span<const int> length, std::size_t L) const {
    const std::size_t B = length.size();
    std::vector<int> ahead(L * B), reversed(L * B), back(B * L), last(B), first(B);
    for (std::size_t b = 0; b < B; ++b) {
      const auto row = tokens.row(b);
      const std::size_t n = length[b];
      for (std::size_t i = 0; i < L; ++i) {
        ahead[i * B + b] = row[i];
        reversed[i * B + b] = i < n ? row[n - 1 - i] : row[i];
        back[b * L + i] = i < n ? static_cast<int>(b * L + n - 1 - i) : -1;
      }
      last[b] = static_cast<int>(b * L + n - 1);
      first[b] = static_cast<int>(b * L);
    }
    const auto f = one_way(tape, forward, Words<T>(tape, embedding, std::move(ahead)), B, L);
    const auto turned = one_way(tape, backward, Words<T>(tape, embedding, std::move(reversed)), B, L);
    const auto b = gather_rows(turned, std::span<const int>(back));
    return {concat_columns({f, b}), concat_columns({gather_rows(f, std::span<const int>(last)),
                                                    gather_rows(b, std::span<const int>(first))})};
  }

 private:
  static Var<T> one_way(Tape<T>& tape, const Lstm<T>& lstm, const Words<T>& words, std::size_t B,
                        std::size_t L) {
    const auto projected = lstm.project(words.rows);
    const auto recurrent = tape.parameter(*lstm.recurrent);
    std::vector<Var<T>> h;
    auto c = tape.constant(B, lstm.hidden);
    for (std::size_t i = 0; i < L; ++i) {
      auto gates = gather_rows(projected, std::span<const int>(words.index).subspan(i * B, B));
      if (i) gates = add_linear(gates, h.back(), recurrent);
      const auto state = lstm_cell(gates, c);
      h.push_back(state.h);
      c = state.c;
    }
    return interleave(std::span<const Var<T>>(h));
  }
};

}  // namespace hardgrad
