// The words of a batch, each distinct one embedded once, so that what is projected is projected once per distinct word.
#pragma once

#include <vector>

#include "core/nn/layers.hpp"

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
  /// The row of token n; where there is but one step of tokens, of that one.
  int row(std::size_t n) const { return index[n % index.size()]; }
};

}  // namespace hardgrad
