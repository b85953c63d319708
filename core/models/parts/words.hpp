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

// Texts as sums of word vectors (bags of words), with or without position encoding (Sukhbaatar et al. 2015, sec. 4.1).
//
//   m = sum_j l_j (.) E[x_j],  l_jd = (1 - j/J) - (d/D)(1 - 2j/J)
// with j = 1..J the place of the word among the J words of its text and d = 1..D; without position encoding l = 1. Padding
// words (0) add nothing.

template <class T>
class Texts {
 public:
  Texts() = default;
  /// The first count(b) texts of W words each in row b of `tokens` [B, >= most W]; D is the width of a word's vector.
  Texts(const Array<int>& tokens, const Items& count, std::size_t W, std::size_t D, bool position_encoding)
      : words_(W), width_(D) {
    for (std::size_t b = 0; b < count.examples(); ++b)
      for (std::size_t i = 0; i < count.count(static_cast<int>(b)) * W; ++i) {
        const int token = row_of(tokens, b)[i];
        token_.push_back(token == 0 ? -1 : token);
      }
    if (position_encoding) encode_places();
  }

  /// m [texts, D] with word vectors from the table E.
  Var<T> sums(Tape<T>& tape, const Embedding<T>& table) const {
    return bag(tape.parameter(*table.weight), std::span<const int>(token_), words_, weights());
  }

 private:
  BagWeights<T> weights() const {
    if (place_.empty()) return {};
    return {{places_.data(), places_.size() / width_, width_}, place_};
  }
  // l depends only on j and J, and few values of J occur: store one row per pair.
  void encode_places() {
    place_.assign(token_.size(), -1);
    std::vector<int> first_of(words_ + 1, -1);  // the row of j = 1 among J words
    for (std::size_t first = 0; first < token_.size(); first += words_) {
      const int* word = token_.data() + first;
      const std::size_t J = words_ - std::count(word, word + words_, -1);
      if (first_of[J] < 0) {
        first_of[J] = static_cast<int>(places_.size() / width_);
        for (std::size_t j = 1; j <= J; ++j) add_place(static_cast<double>(j), static_cast<double>(J));
      }
      int row = first_of[J];
      for (std::size_t w = 0; w < words_; ++w)
        if (word[w] >= 0) place_[first + w] = row++;
    }
  }
  void add_place(double j, double J) {
    const double base = 1 - j / J, slope = (1 - 2 * j / J) / static_cast<double>(width_);
    for (std::size_t d = 1; d <= width_; ++d) places_.push_back(static_cast<T>(base - static_cast<double>(d) * slope));
  }

  std::vector<int> token_;  // [texts W] -1 pads
  std::size_t words_ = 0;   // W
  std::size_t width_ = 0;   // D
  std::vector<T> places_;   // [rows, D] l for every j and J that occurs
  std::vector<int> place_;  // [texts W] the row of each word in places_; empty if l = 1
};

}  // namespace hardgrad
