#include "experiments/tasks/phrase_pairs.hpp"
#include "experiments/tasks/draws.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace hardgrad::tasks {
namespace {

struct Phrase {
  int adjective, noun;  // no adjective: -1
  bool opposite = false, kind = false;
};
struct Event {
  std::array<Phrase, 2> who;
  int verb;
  bool passive = false, denied = false;
};

}  // namespace

LabelledPair PhrasePairs::generate(Key key) const {
  Draws draw(key);
  const auto another = [&](int word) { return (word + 1 + draw.below(words - 1)) % words; };
  using Sentence = std::vector<std::string>;
  const auto say = [&](Sentence& sentence, char what, int word, bool synonyms) {
    sentence.push_back(fmt::format("{}{}{}", what, word, synonyms && draw.below(2) ? "s" : ""));
  };
  const auto say_phrase = [&](Sentence& sentence, const Phrase& it, bool synonyms) {
    if (it.adjective >= 0) say(sentence, it.opposite ? 'u' : 'a', it.adjective, synonyms);
    if (it.kind)
      sentence.push_back(fmt::format("k{}", it.noun % (words / 2)));
    else
      say(sentence, 'n', it.noun, synonyms);
  };
  const auto spelled = [&](const Event& event, bool synonyms) {
    Sentence sentence{"the"};
    say_phrase(sentence, event.who[event.passive], synonyms);
    if (event.passive) sentence.emplace_back("is");
    if (event.denied) sentence.emplace_back("not");
    say(sentence, 'v', event.verb, synonyms);
    if (event.passive) sentence.emplace_back("by");
    sentence.emplace_back("the");
    say_phrase(sentence, event.who[!event.passive], synonyms);
    return sentence;
  };
  const auto any_phrase = [&] { return Phrase{draw.below(2) ? draw.below(words) : -1, draw.below(words)}; };

  LabelledPair pair;
  if (kind == Kind::phrase) {
    const auto first = any_phrase();
    auto second = first;
    pair.label = draw.below(2) ? "same" : "other";
    if (pair.label == "other") {
      auto& word = second.adjective >= 0 && draw.below(2) ? second.adjective : second.noun;
      word = another(word);
    }
    say_phrase(pair.first, first, false);
    say_phrase(pair.second, second, true);
    return pair;
  }
  Event first{};
  for (auto& phrase : first.who) phrase = any_phrase();
  first.who[1].noun = another(first.who[0].noun);
  first.verb = draw.below(words);
  auto second = first;
  if (kind == Kind::paraphrase) {
    second.passive = draw.below(2) == 0;
    pair.label = draw.below(2) ? "same" : "other";
    if (pair.label == "other") switch (draw.below(3)) {
        case 0: std::swap(second.who[0], second.who[1]); break;
        case 1: second.verb = another(second.verb); break;
        default: {
          auto& noun = second.who[draw.below(2)].noun;
          noun = another(noun);
        }
      }
  } else {
    constexpr std::array labels = {"entails", "neutral", "contradicts"};
    const int label = draw.below(3), one = draw.below(2);
    pair.label = labels[label];
    for (auto& phrase : second.who) phrase.kind = draw.below(2) == 0;
    if (label == 0) {
      if (draw.below(2)) second.who[one].adjective = -1;
    } else if (label == 1) {  // the second sentence adds an adjective to a noun without one
      first.who[one].adjective = -1;
      second.who[one].adjective = draw.below(words);
    } else if (first.who[one].adjective >= 0 && draw.below(2)) {
      second.who[one].opposite = true;
    } else {
      second.denied = true;
    }
  }
  pair.first = spelled(first, false);
  pair.second = spelled(second, kind == Kind::paraphrase);
  return pair;
}

}  // namespace hardgrad::tasks
