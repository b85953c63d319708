#include "experiments/tasks/generated_stories.hpp"

#include <fmt/format.h>

#include <array>

#include "experiments/tasks/draws.hpp"

namespace hardgrad::tasks {
namespace {

constexpr std::array people_names = {"Mary", "John", "Sandra", "Daniel", "Julie", "Bill", "Fred", "Jeff"};
constexpr std::array place_names = {"bathroom", "hallway", "garden", "office", "bedroom", "kitchen", "park", "school"};
constexpr std::array thing_names = {"football", "milk", "apple"};
constexpr std::array go = {"moved to", "went to", "journeyed to", "travelled to", "went back to"};
constexpr std::array take = {"got", "took", "grabbed", "picked up"};
constexpr std::array leave = {"dropped", "put down", "left", "discarded"};

struct Person {
  int place = -1, moved = 0;  // the place, and the line of the move there
};
struct Thing {
  int holder = -1, place = -1;
  int touched = 0, moved = 0;  // the lines of the last take or drop, and of the move to its place
};

struct Story {
  const StoryWorld& world;
  Draws draw;
  std::vector<std::string>& lines;
  int number = 0;
  std::vector<Person> people = std::vector<Person>(world.people);
  std::vector<Thing> things = std::vector<Thing>(thing_names.size());

  template <class Words>
  const char* any(const Words& words) {
    return words[draw.below(words.size())];
  }
  int say(const std::string& text) {
    lines.push_back(fmt::format("{} {}", ++number, text));
    return number;
  }

  void walk(int who) {
    auto& person = people[who];
    int place = draw.below(world.places - (person.place >= 0));
    if (person.place >= 0 && place >= person.place) ++place;  // another place
    person.place = place;
    person.moved = say(fmt::format("{} {} the {}.", people_names[who], any(go), place_names[place]));
    for (auto& thing : things)
      if (thing.holder == who) thing.place = place, thing.moved = person.moved;
  }

  // Takes or drops a random thing; false if it is out of reach.
  bool handle(int who) {
    const auto& person = people[who];
    const int what = draw.below(things.size());
    auto& thing = things[what];
    if (thing.holder == who) {
      thing.touched = say(fmt::format("{} {} the {}.", people_names[who], any(leave), thing_names[what]));
      thing.holder = -1;
    } else if (person.place >= 0 && thing.holder < 0 && (thing.place < 0 || thing.place == person.place)) {
      thing = {who, person.place, 0, person.moved};
      thing.touched = say(fmt::format("{} {} the {} there.", people_names[who], any(take), thing_names[what]));
    } else {
      return false;
    }
    return true;
  }

  void ask() {
    std::vector<int> known;
    const bool where_is_thing = world.supporting_facts == 2;
    const int candidates = where_is_thing ? static_cast<int>(things.size()) : world.people;
    for (int i = 0; i < candidates; ++i)
      if (where_is_thing ? things[i].place >= 0 : people[i].place >= 0) known.push_back(i);
    const int which = known[draw.below(known.size())];
    if (where_is_thing)
      say(fmt::format("Where is the {}? \t{}\t{} {}", thing_names[which], place_names[things[which].place],
                      things[which].touched, things[which].moved));
    else
      say(fmt::format("Where is {}? \t{}\t{}", people_names[which], place_names[people[which].place], people[which].moved));
  }

  void tell() {
    for (int q = 0; q < world.questions; ++q) {
      bool askable = false;
      for (int sentence = 0; sentence < 2 || !askable; ++sentence) {
        const int who = draw.below(people.size());
        if (world.supporting_facts == 1 || draw.below(2) || !handle(who)) walk(who);
        askable = world.supporting_facts == 1;
        for (const auto& thing : things) askable = askable || thing.place >= 0;
      }
      ask();
    }
  }
};

}  // namespace

TextFile StoryWorld::tell(Key key) const {
  TextFile text{"generated stories", {}};
  for (int i = 0; i < stories; ++i)
    Story{.world = *this, .draw = Draws(key / static_cast<std::uint64_t>(i)), .lines = text.lines}.tell();
  return text;
}

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
