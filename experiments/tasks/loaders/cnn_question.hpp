// Question files of CNN / Daily Mail (Hermann et al. 2015, "Teaching machines to read and comprehend"). A file has one question
// in five parts separated by blank lines: the article's address, the document, the question with @placeholder for the wanted
// entity, this entity (@entity12), and lines `@entity12:its name`. Tokens are separated by spaces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {

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
