// Question files of CNN / Daily Mail (Hermann et al. 2015, "Teaching machines to read and comprehend"): one question a file,
// five parts with a blank line between them: the article's address, the document, the question with @placeholder for the entity
// that is asked for, that entity (@entity12), and lines `@entity12:its name`. Tokens have spaces between.
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
  std::vector<std::size_t> support;             ///< tokens of the sentence that answers, if it is known
};

constexpr std::string_view placeholder = "@placeholder";
/// True of @entity0, @entity1, ...
bool is_entity(std::string_view token);

/// Throws InputError with line and column for a missing part, a question without @placeholder, an answer that is no entity, an
/// entity's line without a name.
ClozeQuestion parse_cnn_question(const TextFile& text);

/// The names of a folder's question files (*.question, or *.question.gz), in order. InputError if there is no such folder, or
/// none in it.
std::vector<std::string> question_files(const std::string& folder);

}  // namespace hardgrad::tasks
