#include "experiments/tasks/generated_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "experiments/tasks/draws.hpp"

namespace hardgrad::tasks {
namespace {

struct SentenceWriter {
  const SentenceGrammar& grammar;
  Draws draw;
  AlignedPair pair = {};

  int source(std::string word) {
    pair.source.push_back(std::move(word));
    return static_cast<int>(pair.source.size()) - 1;
  }
  void target(std::string word, int from) {
    pair.target.push_back(std::move(word));
    pair.alignment.push_back(from);
  }

  // A noun phrase of at most `room` words.
  void noun_phrase(int room) {
    const bool the = room > 1 && draw.below(2), adjective = room > 1 + the && draw.below(2);
    if (the) source("the");
    const int a = adjective ? draw.below(grammar.words) : 0, at_adjective = adjective ? source(fmt::format("a{}", a)) : 0;
    const int n = draw.below(grammar.words), at_noun = source(fmt::format("n{}", n));
    target(fmt::format("N{}", n), at_noun);
    if (n % 5 == 4) target(fmt::format("M{}", n), at_noun);
    if (adjective) target(fmt::format("A{}", a), at_adjective);
  }

  void sentence(int length) {
    const auto room = [&] { return length - static_cast<int>(pair.source.size()); };
    while (room() > 0) {  // a clause: noun phrase, verb, noun phrase, cut at `length`
      noun_phrase(room());
      if (room() == 0) break;
      const int v = draw.below(grammar.words), at_verb = source(fmt::format("v{}", v));
      if (room() > 0) noun_phrase(room());
      target(fmt::format("V{}", v), at_verb);
    }
  }
};

}  // namespace

AlignedPair SentenceGrammar::generate(Key key) const {
  const auto longest = static_cast<std::size_t>(max_length);
  for (std::uint64_t attempt = 0;; ++attempt) {
    SentenceWriter writer{*this, Draws(key / attempt)};
    writer.sentence(min_length + writer.draw.below(max_length - min_length + 1));
    // Rejection sampling: the translation must not be too long. After 1000 attempts, take the shortest sentence.
    if (writer.pair.target.size() <= longest) return writer.pair;
    if (attempt == 1000) {
      SentenceWriter last{*this, Draws(key)};
      last.target("N0", last.source("n0"));
      return last.pair;
    }
  }
}

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

namespace {

constexpr std::string_view vowels = "aeiou";
constexpr std::array brief = {"AE", "EH", "IH", "AA", "AH"}, lengthened = {"EY", "IY", "AY", "OW", "UW"};

bool is_vowel(char letter) { return vowels.find(letter) != std::string_view::npos; }

std::string sound_of(char consonant) { return {static_cast<char>(consonant - 'a' + 'A')}; }

}  // namespace

SequencePair pronounced(const std::string& letters) {
  SequencePair word;
  for (char letter : letters) word.source.emplace_back(1, letter);
  const std::size_t n = letters.size();
  const auto at = [&](std::size_t i) { return i < n ? letters[i] : '\0'; };
  const auto consonant = [&](std::size_t i) { return i < n && !is_vowel(letters[i]); };
  const auto digraph = [&](std::size_t i) {
    return at(i + 1) == 'h' && std::string_view("sct").find(at(i)) != std::string_view::npos;
  };
  const auto say = [&](std::string sound, std::size_t from) {
    word.gold.add({static_cast<int>(from), static_cast<int>(word.target.size())}, true);
    word.target.push_back(std::move(sound));
  };
  for (std::size_t i = 0; i < n; ++i) {
    const char letter = letters[i];
    if (const auto v = vowels.find(letter); v != std::string_view::npos) {
      const bool silent = letter == 'e' && i + 1 == n && i >= 2 && consonant(i - 1) && is_vowel(at(i - 2));
      const bool long_one = consonant(i + 1) && at(i + 2) == 'e' && i + 3 == n;
      if (!silent) say(long_one ? lengthened[v] : brief[v], i);
    } else if (digraph(i)) {
      say(sound_of(letter) + "H", i++);
    } else {
      if (at(i + 1) == letter) {  // doubled
        say(letter == 'c' ? "K" : sound_of(letter), i++);
        continue;
      }
      const bool soft = letter == 'c' && (at(i + 1) == 'e' || at(i + 1) == 'i');
      say(letter == 'c' ? (soft ? "S" : "K") : sound_of(letter), i);
    }
  }
  return word;
}

SequencePair Spelling::generate(Key key) const {
  constexpr std::array onsets = {"b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "sh", "ch", "th"};
  Draws draw(key);
  std::string letters;
  const auto count = 1 + draw.below(static_cast<std::size_t>(syllables));
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string onset = onsets[draw.below(onsets.size())];
    if (i > 0 && onset.size() == 1 && draw.below(4) == 0) onset += onset;
    letters += onset + vowels[draw.below(vowels.size())];
  }
  const auto ending = draw.below(3);
  if (ending > 0) letters += "bdklmnpt"[draw.below(8)];
  if (ending > 1) letters += 'e';
  return pronounced(letters);
}

}  // namespace hardgrad::tasks
