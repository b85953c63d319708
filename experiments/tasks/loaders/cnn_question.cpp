// Question files of CNN / Daily Mail, part by part.
#include "experiments/tasks/loaders/cnn_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/support/text.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
namespace {

/// Iterates over the parts of a file, lines separated by blank lines.
class Parts {
 public:
  explicit Parts(const TextFile& text) : text_(text) {}
  std::string_view next(const char* what) {
    if (at_ > 0) {
      if (at_ < text_.lines.size() && !blank()) refuse(1, fmt::format("expected a blank line before {}", what));
      ++at_;
    }
    if (at_ >= text_.lines.size())
      refuse_input(text_.path, text_.lines.size(), 0,
                   fmt::format("the file ends before {}: is it truncated? A question file has address, document, question, "
                               "answer and entities, with blank lines between",
                               what));
    if (blank()) refuse(1, fmt::format("a blank line where {} should be", what));
    return text_.lines[at_++];
  }
  /// An error in the last part.
  [[noreturn]] void refuse_last(std::size_t column, const std::string& what) const {
    refuse_input(text_.path, at_, column, what);
  }
  /// Checks the remaining lines, the names of entities.
  void names() {
    for (++at_; at_ < text_.lines.size(); ++at_) {
      const auto colon = text_.lines[at_].find(':');
      if (blank()) continue;
      if (colon == std::string::npos || !is_entity(std::string_view(text_.lines[at_]).substr(0, colon)))
        refuse(1, "expected an entity and its name, e.g. \"@entity12:Mosul\"");
    }
  }

 private:
  bool blank() const { return trimmed(text_.lines[at_]).empty(); }
  [[noreturn]] void refuse(std::size_t column, const std::string& what) const {
    refuse_input(text_.path, at_ + 1, column, what);
  }
  const TextFile& text_;
  std::size_t at_ = 0;
};

}  // namespace

bool is_entity(std::string_view token) {
  constexpr std::string_view name = "@entity";
  const auto number = token.substr(std::min(name.size(), token.size()));
  return token.starts_with(name) && !number.empty() && number.size() <= 9 &&
         std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

ClozeQuestion parse_cnn_question(const TextFile& text) {
  ClozeQuestion result;
  Parts parts(text);
  parts.next("the address of the article");
  result.document = between_blanks(parts.next("the document"));
  result.question = between_blanks(parts.next("the question"));
  if (std::count(result.question.begin(), result.question.end(), placeholder) == 0)
    parts.refuse_last(1, fmt::format("a question must have {} where the entity is missing", placeholder));
  const auto answer = parts.next("the answer");
  result.answer = trimmed(answer);
  if (!is_entity(result.answer))
    parts.refuse_last(1, fmt::format("the answer must be an entity like @entity12, got \"{}\"", result.answer.substr(0, 40)));
  parts.names();
  return result;
}

std::vector<std::string> question_files(const std::string& folder) {
  if (path_kind(folder) != PathKind::folder)
    throw InputError(folder + ": is not a folder; a folder of question files has training/, validation/ and test/");
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".question") || name.ends_with(".question.gz")) files.push_back(entry.path().string());
  }
  if (error) throw InputError(fmt::format("{}: cannot be listed: {}", folder, error.message()));
  if (files.empty()) throw InputError(folder + ": holds no question; question files are named *.question");
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace hardgrad::tasks
