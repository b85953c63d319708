// Stories and reports with questions that need no file, as their readers give them (loaders/questions.hpp).
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/loaders/questions.hpp"

namespace hardgrad::tasks {

// Generated stories in bAbI's format: people move between places, take things and drop them.

struct StoryWorld {
  int stories = 200;
  int questions = 5;         ///< per story, one after about every two sentences
  int supporting_facts = 1;  ///< 1: "Where is Mary?"; 2: "Where is the football?"
  int people = 4, places = 6;

  /// The lines of a bAbI file.
  TextFile tell(Key key) const;
};

// Generated reports of who did what to whom, each with a cloze question that paraphrases one of its sentences.

struct Newsroom {
  int facts = 6;      ///< sentences of a report
  int entities = 6;   ///< possible entities of a report
  int relations = 4;  ///< kinds of facts; several sentences share a kind, so a question's verb does not identify its sentence

  /// One question: exactly one sentence answers it.
  ClozeQuestion report(Key key) const;
};

/// The number of kinds of facts.
int newsroom_relations();

}  // namespace hardgrad::tasks
