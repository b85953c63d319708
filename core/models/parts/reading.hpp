// The order in which an encoder reads a source: forward, reversed (Sutskever, Vinyals & Le 2014, sec. 3.3), or twice over
// (Zaremba & Sutskever 2014, sec. 3.2). A word's state is the one after its last reading.
#pragma once

#include <span>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/support/array.hpp"
#include "core/support/named.hpp"

namespace hardgrad {

enum class ReadingOrder { forward, reversed, twice };
inline constexpr Named<ReadingOrder> reading_orders[] = {
    {"forward", ReadingOrder::forward}, {"reversed", ReadingOrder::reversed}, {"twice", ReadingOrder::twice}};

class Reading {
 public:
  /// Reads sentences [B, >= L] of `length` [B] words.
  Reading(const Array<int>& sentences, const std::vector<int>& length, ReadingOrder order) : length_(length) {
    const bool reversed = order == ReadingOrder::reversed;
    const int times = order == ReadingOrder::twice ? 2 : 1;
    auto count = length;
    for (int& n : count) n *= times;
    count_ = Items(count);
    words_ = zeros<int>({length.size(), count_.most()});
    for (std::size_t b = 0; b < length.size(); ++b) {
      const int n = length[b];
      for (int i = 0; i < count[b]; ++i) words_(b, i) = sentences(b, reversed ? n - 1 - i : i % n);
      for (int i = 0; i < n; ++i) last_.push_back(count_.row(static_cast<int>(b), reversed ? n - 1 - i : (times - 1) * n + i));
    }
    as_it_stands_ = !reversed && times == 1;
  }

  /// [B, most] the words in reading order.
  const Array<int>& words() const { return words_; }
  const Items& count() const { return count_; }
  /// The states [words read, C] at the last reading of each word, sentence by sentence in the source's order. If given, `null`
  /// [1, C] follows each sentence.
  template <class T>
  Var<T> last(Var<T> states, Var<T> null) const {
    if (!null) return as_it_stands_ ? states : gather_rows(states, std::span<const int>(last_));
    std::vector<int> row;
    std::size_t from = 0;
    for (const int n : length_) {
      row.insert(row.end(), last_.begin() + static_cast<std::ptrdiff_t>(from),
                 last_.begin() + static_cast<std::ptrdiff_t>(from + n));
      row.push_back(static_cast<int>(states.rows()));
      from += n;
    }
    const std::vector<Var<T>> both{states, null};
    return gather_rows(std::span<const Var<T>>(both), std::span<const int>(row));
  }

 private:
  std::vector<int> length_;
  Array<int> words_;
  Items count_;
  std::vector<int> last_;  // [source words]
  bool as_it_stands_;
};

}  // namespace hardgrad
