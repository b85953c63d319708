// Generated reports with cloze questions.
#include "experiments/tasks/newsroom.hpp"
#include "experiments/tasks/draws.hpp"

#include <array>

namespace hardgrad::tasks {
namespace {

struct Relation {
  const char *told, *asked;
};
constexpr std::array<Relation, 8> relation_words = {{{"visited", "met"},
                                                     {"hired", "employed"},
                                                     {"sued", "charged"},
                                                     {"praised", "lauded"},
                                                     {"defeated", "outplayed"},
                                                     {"married", "wed"},
                                                     {"funded", "financed"},
                                                     {"blamed", "accused"}}};
constexpr std::array<std::array<const char*, 2>, 4> leads = {
    {{nullptr, nullptr}, {"yesterday", nullptr}, {"last", "week"}, {"officially", nullptr}}};

struct Fact {
  int subject, relation, object;
};

}  // namespace

int newsroom_relations() { return static_cast<int>(relation_words.size()); }

ClozeQuestion Newsroom::report(Key key) const {
  Draws draw(key);
  const auto entity = [](int who) { return "@entity" + std::to_string(who); };
  const auto any_fact = [&] {
    Fact fact{draw.below(entities), draw.below(relations), draw.below(entities - 1)};
    fact.object += fact.object >= fact.subject;
    return fact;
  };

  const auto asked = any_fact();
  const bool of_subject = draw.below(2) == 0;  // the question asks for the subject, else for the object
  const auto answers = [&](const Fact& fact) {
    return fact.relation == asked.relation && (of_subject ? fact.object == asked.object : fact.subject == asked.subject);
  };
  ClozeQuestion result;
  const int place = draw.below(facts);
  for (int i = 0; i < facts; ++i) {
    auto fact = i == place ? asked : any_fact();
    while (i != place && answers(fact)) fact = any_fact();
    const auto first = result.document.size();
    for (const auto* word : leads[draw.below(leads.size())])
      if (word) result.document.emplace_back(word);
    for (const auto& word : {entity(fact.subject), std::string(relation_words[fact.relation].told), entity(fact.object)})
      result.document.push_back(word);
    for (auto token = first; i == place && token < result.document.size(); ++token) result.support.push_back(token);
  }

  const auto who = of_subject ? std::string(placeholder) : entity(asked.subject);
  const auto whom = of_subject ? entity(asked.object) : std::string(placeholder);
  const std::string verb = relation_words[asked.relation].asked;
  if (draw.below(2) == 0)
    result.question = {whom, verb, "by", who};
  else
    result.question = {who, verb, whom};
  result.answer = entity(of_subject ? asked.subject : asked.object);
  return result;
}

}  // namespace hardgrad::tasks
