// A small world that tells stories in bAbI's format: people walk about, take things and drop them.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/loaders/babi.hpp"

namespace hardgrad::tasks {

struct StoryWorld {
  int stories = 200;
  int questions = 5;         ///< per story, after about two sentences each
  int supporting_facts = 1;  ///< 1: "Where is Mary?"; 2: "Where is the football?"
  int people = 4, places = 6;

  /// Text as a bAbI file holds it, line by line.
  TextFile tell(Key key) const;
};

}  // namespace hardgrad::tasks
