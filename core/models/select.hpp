// What a model does with an answer: continue the state of the parents, and take what was chosen.
//
// A hard choice gathers the chosen item, a relaxed one mixes all items. Items of example b are rows b n .. b n + n - 1.
#pragma once

#include <array>
#include <initializer_list>
#include <numeric>
#include <span>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/choice/episode.hpp"

namespace hardgrad {

/// One addend of `gather_sum`: rows index[r] of x; -1 adds nothing; an empty index is the identity.
template <class T>
struct Part {
  Var<T> x;                      ///< [N, C]; an empty handle adds nothing
  std::span<const int> index{};  ///< [R]
};

/// out[r] = sum_j x_j[index_j[r]] -> [R, C]: up to four gathers and their sum without intermediate matrices.
template <class T>
Var<T> gather_sum(std::size_t rows, std::initializer_list<Part<T>> parts) {
  constexpr std::size_t most = 4;
  struct Kept {
    Var<T> x;
    const int* index;
  };
  std::array<Kept, most> kept{};
  std::size_t count = 0;
  for (const auto& part : parts) {
    if (!part.x) continue;
    if (count == most) throw Bug("gather_sum: too many parts");
    if ((part.index.empty() ? part.x.rows() : part.index.size()) != rows)
      throw Bug("gather_sum: rows differ");
    kept[count++] = {part.x, part.index.empty() ? nullptr : part.x.tape->keep(part.index).data()};
  }
  if (count == 0) throw Bug("gather_sum of nothing");
  auto& tape = *kept[0].x.tape;
  const std::size_t cols = kept[0].x.cols();
  for (std::size_t j = count; j < most; ++j) kept[j] = {};
  auto out = tape.output(rows, cols, {kept[0].x, kept[1].x, kept[2].x, kept[3].x});
  auto to = tape.mutable_value(out);
  for (std::size_t j = 0; j < count; ++j) {
    const auto from = kept[j].x.value();
    if (from.cols != cols) throw Bug("gather_sum: columns differ");
    const int* index = kept[j].index;
    for (std::size_t r = 0; index && r < rows; ++r)
      if (index[r] < -1 || index[r] >= static_cast<int>(from.rows))
        throw Bug("gather_sum: an index is out of range");
    for (std::size_t r = 0; r < rows; ++r) {
      const int i = index ? index[r] : static_cast<int>(r);
      T* __restrict o = to.row(r);
      if (i < 0) {
        if (j == 0) std::fill_n(o, cols, T{0});
        continue;
      }
      const T* __restrict x = from.row(i);
      if (j == 0)
        std::copy_n(x, cols, o);
      else
        for (std::size_t c = 0; c < cols; ++c) o[c] += x[c];
    }
  }
  tape.on_backward({out}, [=](Tape<T>& t) {
    const auto g = t.cotangent(out);
    for (std::size_t j = 0; j < count; ++j) {
      if (!t.needs_gradient(kept[j].x)) continue;
      const auto sink = t.sink(kept[j].x);
      if (!kept[j].index) {
        sink.accumulate([&](std::size_t i) { return g.data[i]; });
        continue;
      }
      const auto into = sink.scattered();
      for (std::size_t r = 0; r < rows; ++r) {
        if (kept[j].index[r] < 0) continue;
        T* __restrict o = into.row(kept[j].index[r]);
        const T* __restrict x = g.row(r);
        for (std::size_t c = 0; c < cols; ++c) o[c] += x[c];
      }
    }
  });
  return out;
}

/// True if every row simply continues the row of the same number.
inline bool in_place(const Rows& rows) {
  if (rows.is_root()) return true;
  if (rows.size() != rows.origin->size()) return false;
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows.parent[r] != static_cast<int>(r)) return false;
  return true;
}

/// The parents as an index of `gather_sum`: empty if nothing moves.
inline std::span<const int> parents(const Rows& rows) {
  if (in_place(rows)) return {};
  return rows.parent;
}

/// State [R, C] of the rows that asked, continued on the rows that go on [R', C].
template <class T>
Var<T> follow(const Rows& rows, Var<T> state) {
  const auto index = parents(rows);
  return index.empty() ? state : gather_rows(state, index);
}

/// Index of the chosen items of a hard choice [R'] among the rows of values [B n, .].
template <class T>
std::vector<int> chosen(const Choice<T>& choice, std::size_t items) {
  std::vector<int> index(choice.rows->size());
  for (std::size_t r = 0; r < index.size(); ++r)
    index[r] = choice.rows->example[r] * static_cast<int>(items) + choice.option[r];
  return index;
}

/// The chosen item, or the mixture of the items: values [B n, D] -> [R', D].
template <class T>
Var<T> take(const Choice<T>& choice, Var<T> values, std::size_t items) {
  if (!choice.hard()) return mix(choice.weights, values, std::span<const int>(choice.rows->example));
  const auto index = chosen(choice, items);
  return gather_rows(values, std::span<const int>(index));
}

/// from, from + 1, ...
inline std::vector<int> range(std::size_t from, std::size_t count) {
  std::vector<int> index(count);
  std::iota(index.begin(), index.end(), static_cast<int>(from));
  return index;
}

}  // namespace hardgrad
