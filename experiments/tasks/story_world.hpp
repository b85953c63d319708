// Generated stories in bAbI's format: people move between places, take things and drop them.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/loaders/babi.hpp"

namespace hardgrad::tasks {

struct StoryWorld {
  int stories = 200;
  int questions = 5;         ///< per story, one after about every two sentences
  int supporting_facts = 1;  ///< 1: "Where is Mary?"; 2: "Where is the football?"
  int people = 4, places = 6;

  /// The lines of a bAbI file.
  TextFile tell(Key key) const;
};

}  // namespace hardgrad::tasks
