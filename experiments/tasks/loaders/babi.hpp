// bAbI files (Weston et al. 2015, "Towards AI-complete question answering"): numbered sentences. The line of a question has a
// tab, the answer, a tab, and the numbers of its supporting sentences. Number 1 starts a story.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {

struct BabiQuestion {
  std::size_t story = 0;             ///< index of its story
  std::size_t first = 0, end = 0;    ///< the story so far: sentences [first, end)
  std::vector<std::string> words;    ///< lower case, no punctuation
  std::string answer;                ///< lower case; several words are joined by commas
  std::vector<std::size_t> support;  ///< supporting sentences, in [first, end)
};

struct BabiStories {
  std::vector<std::vector<std::string>> sentences;  ///< of all stories, in order; lower case, no punctuation
  std::vector<BabiQuestion> questions;
  std::vector<std::string> stories;  ///< the normalised text of each story; equal stories have equal texts
};

/// InputError with line and column for a line without a number or out of order, a question without a tab, a question before any
/// sentence, a wrong supporting line, and a file without questions.
BabiStories parse_babi(const TextFile& text);

}  // namespace hardgrad::tasks
