// The part of the target sentence y that a posterior q(z_t | x, y) reads at step t: the word of the step, or the sentence.
//
//   word      r_t = E y_t
//   sentence  r_t = [f_t; b_t], a BiLSTM of `hidden` units per direction over E y_1 .. E y_T (Deng et al. 2018, sec. 4)
// Parameters: <name>.embedding.weight [V, E], <name>.word.weight (W) [H, E], or [H, 2H] for the sentence, and
// <name>.sentence.{forward,backward}.* (bilstm.hpp).
#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "core/models/model.hpp"
#include "core/models/parts/bilstm.hpp"

namespace hardgrad {

enum class TargetPart { word, sentence };
inline constexpr Named<TargetPart> target_parts[] = {{"word", TargetPart::word}, {"sentence", TargetPart::sentence}};

/// The setting `posterior` of a model with such a posterior.
inline void target_part_field(Fields& field, TargetPart& part) {
  field(part, "posterior", target_parts,
        "a learned posterior reads the target's word of the step, or the whole sentence by a BiLSTM");
}

template <class T>
class TargetReading {
 public:
  TargetReading() = default;
  TargetReading(ParameterSet<T>& set, const std::string& name, std::size_t vocabulary, std::size_t embedding,
                std::size_t hidden, Key init, TargetPart part)
      : words_(set, name + ".embedding", vocabulary, embedding, init) {
    const bool sentence = part == TargetPart::sentence;
    if (sentence) sentence_ = {set, name + ".sentence", embedding, hidden, init};
    product_ = {set, name + ".word", sentence ? 2 * hidden : embedding, hidden, init, false};
  }

  /// W r_t of all words of the target sentences of a batch.
  struct Read {
    Var<T> rows;  ///< [., H]
    Items words;
    std::vector<int> index;  ///< [words] the row of each word, sentence by sentence
    int row(int example, int t) const { return index[words.row(example, t)]; }
  };
  /// From the fields `target` [B, T] and `target_length` [B].
  Read operator()(Tape<T>& tape, const Batch& data) const {
    const auto& target = data.ints("target");
    Read read{{}, Items(data.ints("target_length").storage()), {}};
    if (sentence_.forward) {
      read.index.resize(read.words.total());
      std::iota(read.index.begin(), read.index.end(), 0);
      read.rows = product_(sentence_(tape, words_, target, read.words).states);
      return read;
    }
    Words<T> distinct(tape, words_, target, read.words);
    read.rows = product_(distinct.rows);
    read.index = std::move(distinct.index);
    return read;
  }

 private:
  Embedding<T> words_;
  BiLstm<T> sentence_;
  Linear<T> product_;
};

}  // namespace hardgrad
