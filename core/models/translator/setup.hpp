// The settings of the translator, checked against each other, and the sizes that follow from them.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/models/model.hpp"
#include "core/models/parts/local_window.hpp"
#include "core/models/parts/metric_rewards.hpp"
#include "core/models/parts/position_scores.hpp"
#include "core/models/parts/reading.hpp"
#include "core/models/parts/recurrent_unit.hpp"
#include "core/models/parts/target_reading.hpp"
#include "core/models/parts/word_choices.hpp"
#include "core/models/translator/readout.hpp"

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
  int heads = 1, picks = 1;
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
    field(picks, "picks", 1, 1000, "positions that a step and head chooses; their annotations are averaged");
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

struct Setup : Config {
  /// UsageError if two settings contradict each other, or a setting the task's sizes.
  Setup(const Config& config, const Blueprint& b)
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
    refuse_if(!attends && (heads > 1 || null || picks > 1),
              fmt::format("attention=none has neither heads, picks nor a null position; drop {}", null        ? "null"
                                                                                                  : heads > 1 ? "heads"
                                                                                                              : "picks"));
    refuse_if(picks > 1 && feed == Feed::soft,
              "feed=soft feeds the mean of one choice; give picks=1, or feed=none or feed=sampled");
    refuse_if(picks > 1 && writes, "words=sampled chooses one position beside a word; give picks=1");
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
    refuse_if(picks > 1 && window.local != Local::none,
              "a window may hold fewer positions than picks: give picks=1 or local=none");
    refuse_if(attends && score == Score::plain_dot && C != H,
              fmt::format("score=plain_dot multiplies states of hidden={} numbers with annotations of {}: take "
                          "encoder=forward, encoder=none with embedding={}, or score=dot",
                          H, C, H));
  }
};

}  // namespace hardgrad::models::translator
