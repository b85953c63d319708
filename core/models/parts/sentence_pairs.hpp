// Packed pairs of sentences: for each state the tokens of its first sentence, then those of its second. Sentence 2 n + k is the
// k-th of state n. A matrix has a row for every token (or unit of a convolution); `Items` map the rows to sentences.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad {

/// The sentences of the states with these examples, each longer by `more`. `length` [examples] of first and second sentences.
inline Items sentences_of(std::span<const int> example, const std::array<std::span<const int>, 2>& length, int more = 0) {
  std::vector<int> count;
  for (int b : example)
    for (const auto& of : length) count.push_back(of[b] + more);
  return Items(count);
}

/// [tokens] for each token, the other sentence of its pair.
inline std::vector<int> other_sentence(const Items& tokens) {
  std::vector<int> other;
  for (std::size_t s = 0; s < tokens.examples(); ++s) other.insert(other.end(), tokens.count(int(s)), int(s) ^ 1);
  return other;
}

/// For each row i of `to`, the `width` rows of `from` in the same sentence from i + offset on; -1 beyond the sentence's ends.
/// [to's rows, width], row by row.
inline std::vector<int> windows_of(const Items& to, const Items& from, int offset, int width) {
  std::vector<int> row;
  row.reserve(to.total() * width);
  for (std::size_t s = 0; s < to.examples(); ++s)
    for (int i = 0; i < to.count(int(s)); ++i)
      for (int k = i + offset; k < i + offset + width; ++k)
        row.push_back(k >= 0 && k < from.count(int(s)) ? from.row(int(s), k) : -1);
  return row;
}

/// For states that continue from `parent` [N], their rows among the previous ones.
inline std::vector<int> rows_from(std::span<const int> parent, const Items& before) {
  std::vector<int> row;
  for (int n : parent)
    for (int i = before.row(2 * n, 0); i < before.first()[2 * n + 2]; ++i) row.push_back(i);
  return row;
}

/// Tokens as columns of a site: those of the first sentence, then those of the second, then columns without a token. A cell is
/// a column of a state. [N columns] the token of each cell; -1: none.
inline std::vector<int> tokens_of_cells(const Items& tokens, int columns) {
  std::vector<int> token;
  for (std::size_t s = 0; s < tokens.examples(); s += 2)
    for (int c = 0; c < columns; ++c)
      token.push_back(tokens.first()[s] + c < tokens.first()[s + 2] ? tokens.first()[s] + c : -1);
  return token;
}
/// [tokens] the cell of each token.
inline std::vector<int> cells_of_tokens(const Items& tokens, int columns) {
  std::vector<int> cell;
  for (std::size_t s = 0; s < tokens.examples(); s += 2)
    for (int i = tokens.first()[s]; i < tokens.first()[s + 2]; ++i)
      cell.push_back(static_cast<int>(s) / 2 * columns + i - tokens.first()[s]);
  return cell;
}

/// Means over the tokens of each sentence: x [tokens, C] -> [states, 2 C].
template <class T>
Var<T> sentence_means(Var<T> x, const Items& tokens) {
  const auto S = tokens.examples(), most = tokens.most();
  std::vector<int> row(S * most, -1);
  const auto share = x.tape->constant(S, 1);
  for (std::size_t s = 0; s < S; ++s) {
    std::iota(row.begin() + s * most, row.begin() + s * most + tokens.count(int(s)), tokens.row(int(s), 0));
    x.tape->mutable_value(share)(s, 0) = T{1} / static_cast<T>(tokens.count(int(s)));
  }
  return reshape(scale_rows(bag(x, std::span<const int>(row), most), share), 2 * x.cols());
}

/// The current states and their values.
template <class T>
struct PairReading {
  States<T> states;
  std::array<std::span<const int>, 2> length;  ///< of the sentences of each example
  const std::vector<int>& label;               ///< of each example
  Items tokens = {};
  Var<T> x = {};                    ///< [tokens, C]
  std::vector<Var<T>> levels = {};  ///< [states, 2 C] means over the tokens, of each level so far

  /// The states' sentences, each longer by `more`.
  Items sentences(int more = 0) const { return sentences_of(states.example(), length, more); }
  /// Rows of the states before a choice -> rows of those after it.
  static Var<T> after(const States<T>& choice, Var<T> rows, const Items& before) {
    return gather_rows(rows, std::span<const int>(rows_from(choice.histories().parent, before)));
  }
  /// Moves all values but x to the states after a choice.
  void follow(const States<T>& choice) {
    for (auto& level : levels) level = choice.after(level);
    states = choice;
    tokens = sentences();
  }
  /// [states] the labels.
  std::vector<int> labels() const {
    return states.each([&](int b) { return label[b]; });
  }
  /// [rows] the label of each row's pair.
  std::vector<int> labels_of(const Items& rows) const {
    const auto of_state = labels();
    std::vector<int> all;
    for (std::size_t s = 0; s < rows.examples(); ++s) all.insert(all.end(), rows.count(int(s)), of_state[s / 2]);
    return all;
  }
};

}  // namespace hardgrad
