// A bidirectional LSTM, or one of gated units (recurrent_unit.hpp), over token sequences of different lengths. Each step
// includes only the sequences that are long enough.
//
//   x_i = E[token_i],  forward: f_i = LSTM(x_i, f_{i-1}),  backward: b_i = LSTM(x_i, b_{i+1}),  a_i = [f_i; b_i]
// f and b are zero before their first word. The backward direction starts at each sequence's own last word. With one direction
// a_i = f_i. Parameters: <name>.forward.* and <name>.backward.*, `hidden` units each.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/means.hpp"
#include "core/models/parts/recurrent_unit.hpp"
#include "core/models/parts/words.hpp"

namespace hardgrad {

template <class T>
struct BiLstm {
  RecurrentUnit<T> forward, backward;
  struct Encoded {
    Var<T> states;  ///< [words, 2 H] a_i, sequence by sequence; with one direction [words, H]
    Var<T> ends;    ///< [B, 2 H] [f at the last word; b at the first]; with one direction [B, H]
  };

  BiLstm() = default;
  BiLstm(ParameterSet<T>& set, const std::string& name, std::size_t in, std::size_t hidden, Key init, bool both = true,
         UnitKind unit = UnitKind::lstm)
      : forward(set, name + ".forward", in, hidden, init, unit) {
    if (both) backward = {set, name + ".backward", in, hidden, init, unit};
  }

  /// tokens [B, >= S]; sequence b consists of the first words.count(b) >= 1 of them.
  Encoded operator()(Tape<T>& tape, const Embedding<T>& embedding, const Array<int>& tokens, const Items& words) const {
    const auto B = static_cast<int>(words.examples());
    // With the longest first, the sequences of a step are a prefix of those of the previous step.
    std::vector<int> order(B), taking;  // taking [S]: number of sequences of a step
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return words.count(a) > words.count(b); });
    std::vector<int> ahead, reversed;                                    // [words] step by step
    std::vector<int> forth(words.total()), back(words.total()), end(B);  // their places, sequence by sequence
    for (int i = 0; i < static_cast<int>(words.most()); ++i) {
      taking.push_back(0);
      for (int b : order) {
        const int n = words.count(b), place = static_cast<int>(ahead.size());
        if (i >= n) break;
        ahead.push_back(tokens(b, i));
        reversed.push_back(tokens(b, n - 1 - i));
        forth[words.row(b, i)] = back[words.row(b, n - 1 - i)] = place;
        if (i == n - 1) end[b] = place;
        ++taking.back();
      }
    }
    const bool both_ways{backward};
    if (both_ways) ahead.insert(ahead.end(), reversed.begin(), reversed.end());
    const Words<T> embedded(tape, embedding, std::move(ahead));
    const auto index = std::span<const int>(embedded.index);
    using Steps = std::vector<Var<T>>;
    const auto f = one_way(forward, embedded.rows, index.first(words.total()), taking);
    const auto b = both_ways ? one_way(backward, embedded.rows, index.last(words.total()), taking) : Steps{};
    const auto both = [&](const std::vector<int>& of_f, const std::vector<int>& of_b) {
      const auto rows = [](const Steps& steps, const std::vector<int>& of) {
        return gather_rows(std::span<const Var<T>>(steps), std::span<const int>(of));
      };
      return both_ways ? concat_columns({rows(f, of_f), rows(b, of_b)}) : rows(f, of_f);
    };
    return {both(forth, back), both(end, end)};
  }

 private:
  /// The states of each step. `word` [words] are rows of `rows` [., E], step by step.
  static std::vector<Var<T>> one_way(const RecurrentUnit<T>& unit, Var<T> rows, std::span<const int> word,
                                     const std::vector<int>& taking) {
    const auto projected = unit.project(rows);
    std::vector<int> all(taking[0]);
    std::iota(all.begin(), all.end(), 0);
    std::vector<Var<T>> h;
    LstmState<T> s;
    std::size_t from = 0;
    for (const int count : taking) {
      const auto n = static_cast<std::size_t>(count);
      const auto remaining = [&](Var<T> x) {
        return !x || x.rows() == n ? x : gather_rows(x, std::span<const int>(all).first(n));
      };
      s = unit.step(gather_rows(projected, word.subspan(from, n)), LstmState<T>{remaining(s.h), remaining(s.c)});
      h.push_back(s.h);
      from += n;
    }
    return h;
  }
};

/// The same without context: a_i = E[token_i], and the mean of a_1 .. a_L as the end.
template <class T>
typename BiLstm<T>::Encoded word_states(Tape<T>& tape, const Embedding<T>& embedding, const Array<int>& tokens,
                                        const Items& words) {
  const Words<T> distinct(tape, embedding, tokens, words);
  const auto states = gather_rows(distinct.rows, std::span<const int>(distinct.index));
  return {states, means(states, words)};
}

}  // namespace hardgrad
