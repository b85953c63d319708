// The settings of the translator, checked against each other, and the sizes that follow from them.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/models/model.hpp"
#include "core/models/parts/local_window.hpp"
#include "core/models/parts/metric_rewards.hpp"
#include "core/models/parts/position_scores.hpp"
#include "core/models/parts/recurrent_unit.hpp"
#include "core/models/parts/target_reading.hpp"
#include "core/models/parts/word_choices.hpp"

namespace hardgrad::models::translator {

inline std::vector<ParameterInfo> parameters() {
  return {ParameterInfo::integer("embedding", 32, 1, 4096, "width of the word embeddings"),
          ParameterInfo::integer("hidden", 32, 1, 4096, "units of the decoder and of each encoder direction"),
          score_parameter(),
          local_parameter(),
          window_parameter(),
          ParameterInfo::integer("heads", 1, 1, 64, "positions chosen at once; must divide hidden"),
          ParameterInfo::integer("picks", 1, 1, 1000, "positions that a step and head chooses; their annotations are averaged"),
          ParameterInfo::choice("feed", "none", {"none", "soft", "sampled", "attentional"},
                                "context in the decoder's next state; attentional: the readout u_t (input feeding)"),
          ParameterInfo::choice("order", "state_first", {"state_first", "context_first"},
                                "state_first: scores read the step's new state, and the next state reads the context; "
                                "context_first: scores read the last state, and the new state reads the context"),
          ParameterInfo::choice("attention", "source", {"source", "none"},
                                "source: a choice per word; none: no choice, every word reads the encoder's last state"),
          ParameterInfo::choice("encoder", "bidirectional", {"bidirectional", "forward", "none"},
                                "directions of the encoder; none: annotations are word embeddings"),
          unit_parameter(),
          ParameterInfo::choice("start", "both", {"both", "backward"},
                                "first state of the decoder: from both ends of the encoder, or from b_1 alone"),
          ParameterInfo::choice("readout", "all", {"all", "context", "state", "maxout"},
                                "a word depends on state, context and previous word; on the context alone; on state "
                                "and context; or on all by a layer of maxout"),
          ParameterInfo::choice("source", "forward", {"forward", "reversed", "twice"},
                                "order in which the encoder reads the source"),
          target_reading_parameter(),
          words_parameter(),
          reward_parameter(),
          ParameterInfo::flag("null", false, "add a learned position for words without a source word"),
          ParameterInfo::real("dropout", 0, 0, 1, "share of the entries of a_i and u_t dropped in training").below()};
}

struct Setup {
  /// UsageError if two settings contradict each other, or a setting the task's sizes.
  explicit Setup(const Blueprint& b)
      : feed(b.settings.text("feed")),
        encoder(b.settings.text("encoder")),
        reading(b.settings.text("source")),
        readout(b.settings.text("readout")),
        reward(b.settings.text("reward")),
        score(b.settings.text("score")),
        local(b.settings.text("local")),
        context_first(b.settings.text("order") == "context_first"),
        attends(b.settings.text("attention") == "source"),
        null(b.settings.flag("null")),
        writes(b.settings.text("words") == "sampled"),
        gated(b.settings.text("unit") == "gated"),
        backward_start(b.settings.text("start") == "backward"),
        posterior(b.posterior && attends && !writes),
        posterior_sentence(b.settings.text("posterior") == "sentence"),
        heads(b.settings.integer("heads")),
        picks(b.settings.integer("picks")),
        window(b.settings.integer("window")),
        positions(b.dimensions.at("source_length")),
        longest(b.dimensions.at("target_length")),
        bos(b.dimensions.at("bos")),
        eos(b.dimensions.at("eos")),
        dropout(b.settings.real("dropout")),
        E(b.settings.integer("embedding")),
        H(b.settings.integer("hidden")),
        C(encoder == "bidirectional" ? 2 * H
          : encoder == "forward"     ? H
                                     : E),
        read(readout == "maxout" ? H / 2 : H),
        source_vocabulary(b.dimensions.at("source_vocabulary")),
        target_vocabulary(b.dimensions.at("target_vocabulary")) {
    check();
  }

  std::string feed, encoder, reading, readout, reward, score, local;
  bool context_first, attends, null, writes, gated, backward_start;
  bool posterior, posterior_sentence;  ///< it is built; it reads the whole sentence
  int heads, picks, window;
  int positions, longest;  ///< of a source, most words of a target
  int bos, eos;
  double dropout;
  std::size_t E, H, C;  ///< numbers of an embedding, a state, an annotation
  std::size_t read;     ///< numbers of u_t
  std::size_t source_vocabulary, target_vocabulary;

 private:
  void check() const {
    const auto refuse_if = [](bool wrong, const auto& why) {
      if (wrong) throw UsageError("translator: " + std::string(why));
    };
    refuse_if(H % heads != 0, fmt::format("heads={} must divide hidden={}", heads, H));
    refuse_if(!attends && (heads > 1 || null || picks > 1),
              fmt::format("attention=none has neither heads, picks nor a null position; drop {}", null        ? "null"
                                                                                                  : heads > 1 ? "heads"
                                                                                                              : "picks"));
    refuse_if(picks > 1 && feed == "soft",
              "feed=soft feeds the mean of one choice; give picks=1, or feed=none or feed=sampled");
    refuse_if(picks > 1 && writes, "words=sampled chooses one position beside a word; give picks=1");
    refuse_if(context_first && (!attends || (feed != "soft" && feed != "sampled")),
              "order=context_first feeds the context of a step to its state: give attention=source and feed=soft or "
              "feed=sampled");
    refuse_if(backward_start && encoder != "bidirectional",
              "start=backward needs an encoder that reads backward: give encoder=bidirectional");
    refuse_if(!attends && feed == "attentional",
              "feed=attentional feeds what attention has read: give attention=source or another feed");
    refuse_if(readout == "maxout" && H % 2 != 0,
              fmt::format("readout=maxout takes the larger of each two numbers: hidden={} must be even", H));
    refuse_if(encoder == "none" && reading != "forward", "encoder=none reads words in no order; drop source=" + reading);
    refuse_if(!attends && (local != "none" || score == "location"),
              "attention=none has neither scores nor a window: drop score and local");
    refuse_if(null && (local != "none" || score == "location"),
              "a null position has no place in the source: drop null, or take local=none and another score");
    refuse_if(picks > 1 && local != "none", "a window may hold fewer positions than picks: give picks=1 or local=none");
    refuse_if(attends && score == "plain_dot" && C != H,
              fmt::format("score=plain_dot multiplies states of hidden={} numbers with annotations of {}: take "
                          "encoder=forward, encoder=none with embedding={}, or score=dot",
                          H, C, H));
  }
};

}  // namespace hardgrad::models::translator
