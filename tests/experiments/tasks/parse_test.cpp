// Parsing: conversion between trees and rows of brackets, attachments of the generated grammar, metrics.
#include <numeric>
#include <set>

#include "experiments/tasks/task.hpp"
#include "experiments/tasks/text.hpp"
#include "experiments/tasks/trees.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::parse_test {
using namespace tasks;

namespace {

auto brackets(const std::string& row, std::size_t words) { return brackets_of(between_blanks(row), words); }

}  // namespace

TEST_CASE("a row of brackets is parsed as a tree or rejected") {
  const auto found = brackets("(S (NP XX XX )NP (VP XX )VP )S", 3);
  REQUIRE(found);
  CHECK(*found == std::multiset<Bracket>{{"S", 0, 3}, {"NP", 0, 2}, {"VP", 2, 3}});
  CHECK(brackets("XX", 1));
  for (const std::string row : {"(S XX )NP", "(S XX", "XX )S", "(S XX )S XX", "(S XX )S (S XX )S", "(S (NP )NP XX )S", "XX XX",
                                "", ")S", "(S XX )S )S"})
    for (std::size_t words = 0; words < 3; ++words) CHECK_FALSE(brackets(row, words));
  CHECK_FALSE(brackets("(S XX )S", 2));
}

TEST_CASE("phrases attach to the verb or to the noun, as the words determine") {
  int to_verb = 0, to_noun = 0, visited = 0;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const auto pair = TreeGrammar{.words = 4, .phrases = 3}.generate(Key(4) / i);
    CHECK(pair.gold.empty());
    const auto found = brackets_of(pair.target, pair.source.size());
    REQUIRE(found);
    int verb_at = 0;
    while (pair.source[verb_at][0] != 'v') ++verb_at;
    const int verb = std::stoi(pair.source[verb_at].substr(1));
    for (const auto& [label, first, end] : *found) {
      if (label != "PP" || first < verb_at) continue;
      ++visited;
      const auto& preposition = pair.source[first];
      int at = first + 2;  // the noun
      while (pair.source[at][0] != 'n') ++at;
      const int noun = std::stoi(pair.source[at].substr(1));
      const bool wanted = (preposition == "with" && verb % 2 == 0 && noun % 2 == 0) || (preposition == "in" && noun % 3 == 0);
      // It attaches to a noun if an NP that began before it ends at its end.
      bool in_noun_phrase = false;
      for (const auto& [other, from, to] : *found)
        in_noun_phrase |= other == "NP" && from > verb_at && from < first && to >= end;
      CHECK(in_noun_phrase == !wanted);
      (wanted ? to_verb : to_noun) += 1;
    }
  }
  CHECK(visited > 400);
  CHECK(to_verb > 50);
  CHECK(to_noun > 50);
  int moved = 0;
  for (std::uint64_t i = 0; i < 100; ++i)
    moved += TreeGrammar{.words = 4, .phrases = 3, .ambiguity = 0.5}.generate(Key(4) / i).target !=
             TreeGrammar{.words = 4, .phrases = 3}.generate(Key(4) / i).target;
  CHECK(moved > 20);
}

TEST_CASE("brackets are scored one by one, and a row that is not a tree scores 0") {
  Folder folder;
  const auto path = folder.write("t", "(S (NP (D the) (N dog)) (VP (V sees) (NP (D the) (N cat))))\n");
  const auto task = make_task(Spec::parse("parse[heldout=0,test=0,path=" + path + "]"), Key(1));
  const auto batch = task->batch(Split::train, {0});
  const auto judged = [&](const std::string& row) {
    std::vector<int> said;
    for (const auto& symbol : between_blanks(row))
      for (int n = 1; n < task->dimensions().at("target_vocabulary"); ++n)
        if (task->word("target", n) == symbol) said.push_back(n);
    auto metrics = task->metrics();
    const auto most = said.size();
    task->score_decoded(batch, {shaped<int>({1, most}, said), zeros<int>({1, 0})}, metrics);
    return metrics;
  };
  const auto right = judged("(S (NP XX XX )NP (VP XX (NP XX XX )NP )VP )S");
  CHECK(value(right, "bracket_f1") == 1);
  CHECK(value(right, "well_formed") == 1);
  CHECK(value(right, "exact_match_decoded") == 1);
  const auto flat = judged("(S (NP XX XX )NP (VP XX )VP (NP XX XX )NP )S");
  CHECK(value(flat, "bracket_f1") == 2 * 3.0 / (4 + 4));
  CHECK(value(flat, "well_formed") == 1);
  const auto broken = judged("(S (NP XX XX )NP (VP XX (NP XX XX )NP )S");
  CHECK(value(broken, "bracket_f1") == 0);
  CHECK(value(broken, "well_formed") == 0);
  CHECK(value(judged("(S (NP XX XX )NP (VP XX (NP XX )NP )VP )S"), "well_formed") == 0);  // a word is missing
}

TEST_CASE("excluded and unusable trees are reported") {
  Folder folder;
  const auto path = folder.write("t", "(S (N A) (V b))\n(S (N a) (V b) (N c))\n");
  const auto make = [](const std::string& arguments) { return make_task(Spec::parse("parse[" + arguments + "]"), Key(1)); };
  CHECK(
      has(make("heldout=0,test=0,max_length=2,path=" + path)->provenance(), "2 trees read; left out: 1 of more than 2 words"));
  CHECK(make("heldout=0,test=0,path=" + path)->dimensions().at("source_vocabulary") == 4 + 3);
  CHECK(make("heldout=0,test=0,lower_case=false,path=" + path)->dimensions().at("source_vocabulary") == 4 + 4);
  CHECK(has(refusal(folder, [&] { make("max_length=1,path=" + path); }),
            "t: nothing left: all 2 sentences are longer than max_length=1"));
  CHECK(has(refusal(folder, [&] { make("heldout=0.6,test=0.6"); }), "parse: heldout and test together must be below 1"));
}

}  // namespace hardgrad::testing::parse_test
