// Texts as sums of word vectors (bags of words), with or without position encoding (Sukhbaatar et al. 2015, sec. 4.1).
//
//   m = sum_j l_j (.) E[x_j],  l_jd = (1 - j/J) - (d/D)(1 - 2j/J)
// with j = 1..J the place of the word among the J words of its text and d = 1..D; without position encoding l = 1. Padding
// words (0) add nothing. Equal texts are summed once.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/models/parts/sum.hpp"
#include "core/support/array.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

template <class T>
class Texts {
 public:
  Texts() = default;
  /// The first count(b) texts of W words each in row b of `tokens` [B, >= most W]; D is the width of a word's vector.
  Texts(const Array<int>& tokens, const Items& count, std::size_t W, std::size_t D, bool position_encoding)
      : words_(W), width_(D) {
    const int examples = static_cast<int>(count.examples());
    const std::size_t texts = count.total();
    if (W == 0 && texts > 0) throw Bug("texts without words");
    token_.reserve(texts * W);
    text_.reserve(texts);
    std::vector<int> place(std::bit_ceil(2 * texts + 1), -1);  // a hash table of the distinct texts
    for (int b = 0; b < examples; ++b)
      for (int i = 0; i < count.count(b); ++i) text_.push_back(number(row_of(tokens, b).subspan(i * W, W), place));
    if (distinct() == texts) text_.clear();
    if (position_encoding) encode_places();
  }

  /// m [texts, D] with word vectors from the table E [V, D]. The sum must not outlive the object.
  Sum<T> sums(Var<T> table) const {
    return {bag(table, std::span<const int>(token_), words_, weights()), std::span<const int>(text_)};
  }
  std::size_t distinct() const { return words_ == 0 ? 0 : token_.size() / words_; }

 private:
  /// The number of this text among the distinct ones, to which it is added.
  int number(std::span<const int> text, std::vector<int>& place) {
    std::uint64_t hash = 0;
    for (int token : text) hash = (hash ^ static_cast<std::uint64_t>(token)) * 0x9E3779B97F4A7C15u;
    const std::size_t first = token_.size();
    for (int token : text) token_.push_back(token == 0 ? -1 : token);
    for (std::size_t at = hash >> 32;; ++at) {
      int& known = place[at & (place.size() - 1)];
      if (known < 0) return known = static_cast<int>(first / words_);
      if (std::equal(token_.begin() + first, token_.end(), token_.begin() + known * words_)) {
        token_.resize(first);
        return known;
      }
    }
  }
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

  std::vector<int> text_;   // [texts] its distinct text; empty if all are distinct
  std::vector<int> token_;  // [distinct texts W] -1 pads
  std::size_t words_ = 0;   // W
  std::size_t width_ = 0;   // D
  std::vector<T> places_;   // [rows, D] l for every j and J that occurs
  std::vector<int> place_;  // [distinct texts W] the row of each word in places_; empty if l = 1
};

}  // namespace hardgrad
