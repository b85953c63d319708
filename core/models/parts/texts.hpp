// Texts as sums of their words' vectors, bags of words, with or without position encoding (Sukhbaatar et al. 2015, sec. 4.1).
//
//   m = sum_j l_j (.) E[x_j],  l_jd = (1 - j/J) - (d/D)(1 - 2j/J)
// with j = 1..J the place of the word among the J words of its text and d = 1..D; without position encoding l = 1. Padding
// words (0) add nothing.
#pragma once

#include <algorithm>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

template <class T>
class Texts {
 public:
  Texts() = default;
  /// The first count(b) texts of W words each in row b of `tokens` [B, >= most W]; D is the width of a word's vector.
  Texts(Tape<T>& tape, const Array<int>& tokens, const Items& count, std::size_t W, std::size_t D, bool position_encoding)
      : words_(W) {
    for (std::size_t b = 0; b < count.examples(); ++b)
      for (std::size_t i = 0; i < count.count(static_cast<int>(b)) * W; ++i) {
        const int token = tokens.row(b)[i];
        token_.push_back(token == 0 ? -1 : token);
      }
    if (position_encoding) encode_places(tape, D);
  }

  /// m [texts, D] with the words' vectors of the table E.
  Var<T> sums(Tape<T>& tape, const Embedding<T>& table) const {
    return bag(tape.parameter(*table.weight), std::span<const int>(token_), words_, place_);
  }

 private:
  void encode_places(Tape<T>& tape, std::size_t D) {
    const auto place = tape.template scratch<T>(token_.size() * D);
    for (std::size_t first = 0; first < token_.size(); first += words_) {
      const int* word = token_.data() + first;
      const auto J = static_cast<double>(words_ - std::count(word, word + words_, -1));
      double j = 0;
      for (std::size_t w = 0; w < words_; ++w) {
        T* l = place.data() + (first + w) * D;
        if (word[w] < 0) {
          std::fill_n(l, D, T{0});
          continue;
        }
        ++j;
        const double base = 1 - j / J, slope = (1 - 2 * j / J) / static_cast<double>(D);
        for (std::size_t d = 0; d < D; ++d) l[d] = static_cast<T>(base - static_cast<double>(d + 1) * slope);
      }
    }
    place_ = {place.data(), token_.size(), D};
  }

  std::vector<int> token_;     // [texts W] -1 pads
  std::size_t words_ = 0;      // W
  MatrixView<const T> place_;  // [texts W, D] l; empty if all ones
};

}  // namespace hardgrad
