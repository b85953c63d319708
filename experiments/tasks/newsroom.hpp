// Generated reports of who did what to whom, each with a cloze question that paraphrases one of its sentences.
#pragma once

#include "core/random/key.hpp"
#include "experiments/tasks/loaders/cnn_question.hpp"

namespace hardgrad::tasks {

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
