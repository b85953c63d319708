// Questions about texts in files: bAbI's stories, and the articles of CNN / Daily Mail.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {

// bAbI files (Weston et al. 2015, "Towards AI-complete question answering"): numbered sentences. The line of a question has a
// tab, the answer, a tab, and the numbers of its supporting sentences. Number 1 starts a story.

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

// Question files of CNN / Daily Mail (Hermann et al. 2015, "Teaching machines to read and comprehend"). A file has one question
// in five parts separated by blank lines: the article's address, the document, the question with @placeholder for the wanted
// entity, this entity (@entity12), and lines `@entity12:its name`. Tokens are separated by spaces.

struct ClozeQuestion {
  std::vector<std::string> document, question;  ///< tokens; entities are @entity<number>
  std::string answer;                           ///< an entity
  std::vector<std::size_t> support;             ///< token indices of the sentence with the answer, if known
};

constexpr std::string_view placeholder = "@placeholder";
/// True for @entity0, @entity1, ...
bool is_entity(std::string_view token);

/// InputError with line and column for a missing part, a question without @placeholder, an answer that is not an entity, or an
/// entity's line without a name.
ClozeQuestion parse_cnn_question(const TextFile& text);

/// The sorted names of a folder's question files (*.question or *.question.gz). InputError if there is no such folder or no
/// such file.
std::vector<std::string> question_files(const std::string& folder);

}  // namespace hardgrad::tasks
