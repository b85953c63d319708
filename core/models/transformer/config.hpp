// The settings of the transformer, checked against each other, and the sizes that follow from them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "core/choice/subsets.hpp"
#include "core/models/model.hpp"
#include "core/support/named.hpp"

namespace hardgrad::models::transformer {

enum class Places { learned, sinusoidal, rotary };
constexpr Named<Places> all_places[] = {
    {"learned", Places::learned}, {"sinusoidal", Places::sinusoidal}, {"rotary", Places::rotary}};

/// Whose scores are the logits of the choices.
enum class Scorer { heads, indexer };
constexpr Named<Scorer> scorers[] = {{"heads", Scorer::heads}, {"indexer", Scorer::indexer}};

/// The weights of the values that a head has chosen.
enum class Within { softmax, equal };
constexpr Named<Within> all_within[] = {{"softmax", Within::softmax}, {"equal", Within::equal}};

/// The keys of a choice.
enum class Law { conditional_poisson, plackett_luce, top };
constexpr Named<Law> laws[] = {
    {"conditional_poisson", Law::conditional_poisson}, {"plackett_luce", Law::plackett_luce}, {"top", Law::top}};

/// The keys over which an indexer imitates.
enum class Over { all, picked };
constexpr Named<Over> all_over[] = {{"all", Over::all}, {"picked", Over::picked}};

struct Config {
  int layers = 2, heads = 2, picks = 1;
  std::size_t width = 32, inner = 64;
  Places places = Places::learned;
  bool share = false;
  Scorer scorer = Scorer::heads;
  Law law = Law::conditional_poisson;
  Within within = Within::softmax;
  std::size_t index_heads = 2, index_width = 8;
  double imitation = 0;
  Over over = Over::all;

  void declare(Fields& field) {
    field(layers, "layers", 1, 16, "layers of attention and feed-forward");
    field(heads, "heads", 1, 64, "heads of attention in a layer; they divide `width`");
    field(width, "width", 1, 4096, "width of a token's state");
    field(inner, "inner", 0, 16384, "units of the feed-forward part; 0: there is none");
    field(places, "places", all_places, "how a token's place enters: added to its embedding, or rotating queries and keys");
    field(picks, "picks", 0, 10000, "keys that a head reads, of fewer so far all; 0: all keys, softly, without a choice");
    field(share, "share", "the heads of a layer share one choice");
    field(scorer, "scorer", scorers, "logits of the choices: the heads' own scores, or those of an indexer");
    field(law, "law", laws, "the distribution of subsets; top: no draw, the keys with the largest logits");
    field(within, "within", all_within, "weights of several chosen values: the head's softmax among them, or equal ones");
    field(index_heads, "index_heads", 1, 64, "scorer=indexer: its heads, for each choice");
    field(index_width, "index_width", 1, 1024, "scorer=indexer: width of its queries and keys");
    field(imitation, "imitation", 0, 1e6, "weight of the divergence of the indexer from the heads' attention in the loss");
    field(over, "over", all_over, "imitation: over all keys, by dense attention, or, with law=top, over the picked ones");
  }
};

/// The settings with the task's sizes.
struct Sizes : Config {
  std::size_t tokens, positions, labels;
  int choices;       ///< D, columns of a question
  std::size_t head;  ///< C, width of a head
  bool asks;         ///< a choice is drawn

  Sizes(const Config& config, const Dimensions& dimensions)
      : Config(config),
        tokens(static_cast<std::size_t>(dimensions.at("tokens"))),
        positions(static_cast<std::size_t>(dimensions.at("positions"))),
        labels(static_cast<std::size_t>(dimensions.at("labels"))),
        choices(share ? 1 : heads),
        head(width / static_cast<std::size_t>(heads)),
        asks(picks > 0 && law != Law::top) {
    const auto refuse = [](const std::string& why) { throw UsageError("transformer: " + why); };
    if (width % static_cast<std::size_t>(heads) != 0) refuse(fmt::format("heads={} must divide width={}", heads, width));
    if (places == Places::rotary && head % 2 != 0)
      refuse(fmt::format("places=rotary turns pairs of numbers, but a head has {}: take an even width / heads", head));
    if (places == Places::rotary && scorer == Scorer::indexer && index_width % 2 != 0)
      refuse(fmt::format("places=rotary turns pairs of numbers: take an even index_width, not {}", index_width));
    if (imitation > 0 && scorer != Scorer::indexer)
      refuse("imitation trains an indexer to follow the heads' dense attention: take scorer=indexer");
    if (over == Over::picked && (imitation == 0 || picks == 0 || law != Law::top))
      refuse("over=picked is of an imitation over keys that are picked without a draw: give imitation, picks and law=top");
    if (picks == 0 && scorer == Scorer::indexer && imitation == 0)
      refuse("with picks=0 nothing is chosen, so that an indexer has no effect: give imitation, or picks");
  }
  /// k of t keys.
  int picked_of(int keys) const { return std::min(picks, keys); }
  SubsetDistribution distribution() const {
    return law == Law::plackett_luce ? SubsetDistribution::plackett_luce : SubsetDistribution::conditional_poisson;
  }
  /// Answers of one choice among so many keys.
  double answers(int keys) const { return subsets_of(keys, picks); }
};

}  // namespace hardgrad::models::transformer
