// A small newsroom: reports of who did what to whom, and a question that says one of their sentences in other words.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/loaders/cnn_question.hpp"

namespace hardgrad::tasks {

struct Newsroom {
  int facts = 6;      ///< sentences of a report
  int entities = 6;   ///< who may be in it
  int relations = 4;  ///< kinds of facts: several sentences share each, so that a question's verb alone finds no sentence

  /// One question: exactly one sentence answers it.
  ClozeQuestion report(Key key) const;
};

/// How many kinds of facts there are.
int newsroom_relations();

}  // namespace hardgrad::tasks
