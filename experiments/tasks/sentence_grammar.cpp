// A small generated language pair whose word alignment is known.
#include "experiments/tasks/sentence_grammar.hpp"
#include "experiments/tasks/draws.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

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

}  // namespace hardgrad::tasks
