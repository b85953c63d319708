// The words of a batch. Each distinct word is embedded and projected once.
#pragma once

#include <algorithm>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/nn/layers.hpp"
#include "core/support/array.hpp"

namespace hardgrad {

/// Embedded tokens: token n is row index[n] of `rows`.
template <class T>
struct Words {
  Var<T> rows;             ///< [distinct tokens, E], in the order of their first places
  std::vector<int> index;  ///< [tokens]

  Words() = default;
  Words(Tape<T>& tape, const Embedding<T>& embedding, std::vector<int> tokens) : index(std::move(tokens)) {
    std::vector<int> place(embedding.weight->rows(), -1), distinct;
    for (int& token : index) {
      if (place.at(token) < 0) {
        place[token] = static_cast<int>(distinct.size());
        distinct.push_back(token);
      }
      token = place[token];
    }
    rows = embedding(tape, std::span<const int>(distinct));
  }
  /// The words of sentences [B, >= S], sentence by sentence: the first items.count(b) tokens of each.
  Words(Tape<T>& tape, const Embedding<T>& embedding, const Array<int>& sentences, const Items& items)
      : Words(tape, embedding, flat(sentences, items)) {}
  /// The row of token n, modulo the number of tokens: with the tokens of one step only, n may be of any step.
  int row(std::size_t n) const { return index[n % index.size()]; }

 private:
  static std::vector<int> flat(const Array<int>& sentences, const Items& items) {
    std::vector<int> tokens;
    for (int b = 0; b < static_cast<int>(items.examples()); ++b) {
      const auto sentence = row_of(sentences, b).first(items.count(b));
      tokens.insert(tokens.end(), sentence.begin(), sentence.end());
    }
    return tokens;
  }
};

}  // namespace hardgrad
