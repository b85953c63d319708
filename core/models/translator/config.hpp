// The settings of the translator, checked against each other, and the sizes that follow from them.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/metric_rewards.hpp"
#include "core/models/parts/posterior_scores.hpp"
#include "core/models/parts/recurrent_unit.hpp"
#include "core/models/parts/word_choices.hpp"
#include "core/models/translator/layers.hpp"
#include "core/support/array.hpp"
#include "core/support/named.hpp"

namespace hardgrad {

// The order in which an encoder reads a source: forward, reversed (Sutskever, Vinyals & Le 2014, sec. 3.3), or twice over
// (Zaremba & Sutskever 2014, sec. 3.2). A word's state is the one after its last reading.

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

namespace hardgrad::models::translator {

enum class Feed { none, soft, sampled, attentional };
inline constexpr Named<Feed> feeds[] = {
    {"none", Feed::none}, {"soft", Feed::soft}, {"sampled", Feed::sampled}, {"attentional", Feed::attentional}};
enum class Order { state_first, context_first };
inline constexpr Named<Order> orders[] = {{"state_first", Order::state_first}, {"context_first", Order::context_first}};
enum class Attention { source, none };
inline constexpr Named<Attention> attentions[] = {{"source", Attention::source}, {"none", Attention::none}};
enum class Directions { bidirectional, forward, none };
inline constexpr Named<Directions> all_directions[] = {
    {"bidirectional", Directions::bidirectional}, {"forward", Directions::forward}, {"none", Directions::none}};
enum class Start { both, backward };
inline constexpr Named<Start> starts[] = {{"both", Start::both}, {"backward", Start::backward}};

struct Config {
  std::size_t embedding = 32, hidden = 32;
  Score score = Score::additive;
  WindowConfig window;
  int heads = 1, subset_size = 1;
  Feed feed = Feed::none;
  Order order = Order::state_first;
  Attention attention = Attention::source;
  Directions encoder = Directions::bidirectional;
  UnitKind unit = UnitKind::lstm;
  Start start = Start::both;
  const ReadoutKind* readout = &readouts[0];
  ReadingOrder source = ReadingOrder::forward;
  TargetPart posterior = TargetPart::word;
  WordsConfig words;
  bool null = false;
  double dropout = 0;

  void declare(Fields& field) {
    field(embedding, "embedding", 1, 4096, "width of the word embeddings");
    field(hidden, "hidden", 1, 4096, "units of the decoder and of each encoder direction");
    field(score, "score", all_scores, "score of a position");
    window.declare(field);
    field(heads, "heads", 1, 64, "positions chosen at once; must divide hidden");
    field(subset_size, "picks", 1, 1000, "positions that a step and head chooses; their annotations are averaged");
    field(feed, "feed", feeds, "context in the decoder's next state; attentional: the readout u_t (input feeding)");
    field(order, "order", orders,
          "state_first: scores read the step's new state, and the next state reads the context; "
          "context_first: scores read the last state, and the new state reads the context");
    field(attention, "attention", attentions,
          "source: a choice per word; none: no choice, every word reads the encoder's last state");
    field(encoder, "encoder", all_directions, "directions of the encoder; none: annotations are word embeddings");
    field(unit, "unit", unit_kinds, "recurrent unit of encoder and decoder");
    field(start, "start", starts, "first state of the decoder: from both ends of the encoder, or from b_1 alone");
    field(readout, "readout", readouts,
          "a word depends on state, context and previous word; on the context alone; on state "
          "and context; or on all by a layer of maxout");
    field(source, "source", reading_orders, "order in which the encoder reads the source");
    target_part_field(field, posterior);
    words.declare(field);
    field(null, "null", "add a learned position for words without a source word");
    field(dropout, "dropout", 0, 1, "share of the entries of a_i and u_t dropped in training").below();
  }
};

struct TranslatorConfig : Config {
  /// UsageError if two settings contradict each other, or a setting the task's sizes.
  TranslatorConfig(const Config& config, const Blueprint& b)
      : Config(config),
        context_first(order == Order::context_first),
        attends(attention == Attention::source),
        writes(words.words == WordSource::sampled),
        inferred(b.posterior && attends && !writes),
        positions(b.dimensions.at("source_length")),
        longest(b.dimensions.at("target_length")),
        bos(b.dimensions.at("bos")),
        eos(b.dimensions.at("eos")),
        E(embedding),
        H(hidden),
        C(encoder == Directions::bidirectional ? 2 * H
          : encoder == Directions::forward     ? H
                                               : E),
        source_vocabulary(b.dimensions.at("source_vocabulary")),
        target_vocabulary(b.dimensions.at("target_vocabulary")) {
    check();
  }

  bool context_first, attends, writes;
  bool inferred;           ///< there is a posterior
  int positions, longest;  ///< of a source, most words of a target
  int bos, eos;
  std::size_t E, H, C;  ///< numbers of an embedding, a state, an annotation
  std::size_t source_vocabulary, target_vocabulary;

 private:
  void check() const {
    const auto refuse_if = [](bool wrong, const auto& why) {
      if (wrong) throw UsageError("translator: " + std::string(why));
    };
    const bool placed = window.local != Local::none || score == Score::location;
    refuse_if(H % heads != 0, fmt::format("heads={} must divide hidden={}", heads, H));
    refuse_if(!attends && (heads > 1 || null || subset_size > 1),
              fmt::format("attention=none has neither heads, picks nor a null position; drop {}", null        ? "null"
                                                                                                  : heads > 1 ? "heads"
                                                                                                              : "picks"));
    refuse_if(subset_size > 1 && feed == Feed::soft,
              "feed=soft feeds the mean of one choice; give picks=1, or feed=none or feed=sampled");
    refuse_if(subset_size > 1 && writes, "words=sampled chooses one position beside a word; give picks=1");
    refuse_if(context_first && (!attends || (feed != Feed::soft && feed != Feed::sampled)),
              "order=context_first feeds the context of a step to its state: give attention=source and feed=soft or "
              "feed=sampled");
    refuse_if(start == Start::backward && encoder != Directions::bidirectional,
              "start=backward needs an encoder that reads backward: give encoder=bidirectional");
    refuse_if(!attends && feed == Feed::attentional,
              "feed=attentional feeds what attention has read: give attention=source or another feed");
    refuse_if(H % readout->pooled != 0,
              fmt::format("readout=maxout takes the larger of each two numbers: hidden={} must be even", H));
    refuse_if(encoder == Directions::none && source != ReadingOrder::forward,
              std::string("encoder=none reads words in no order; drop source=") + name_of(source, reading_orders));
    refuse_if(!attends && placed, "attention=none has neither scores nor a window: drop score and local");
    refuse_if(null && placed, "a null position has no place in the source: drop null, or take local=none and another score");
    refuse_if(subset_size > 1 && window.local != Local::none,
              "a window may hold fewer positions than picks: give picks=1 or local=none");
    refuse_if(attends && score == Score::plain_dot && C != H,
              fmt::format("score=plain_dot multiplies states of hidden={} numbers with annotations of {}: take "
                          "encoder=forward, encoder=none with embedding={}, or score=dot",
                          H, C, H));
  }
};

}  // namespace hardgrad::models::translator
