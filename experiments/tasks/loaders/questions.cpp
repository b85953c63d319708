#include "experiments/tasks/loaders/questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "core/support/text.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
namespace {

constexpr std::size_t most_words = 200;  // per sentence, as every sentence is padded to the longest

std::vector<std::string> words_of(const TextFile& text, std::size_t line, std::size_t column, std::string_view sentence) {
  auto tokens = tokenize(sentence, true);
  std::erase_if(tokens, [](const std::string& token) { return is_punctuation(token); });
  if (tokens.empty()) refuse_input(text.path, line, column, "a sentence without words");
  if (tokens.size() > most_words)
    refuse_input(text.path, line, column,
                 fmt::format("a sentence of {} words; at most {} are taken", tokens.size(), most_words));
  return tokens;
}

}  // namespace

BabiStories parse_babi(const TextFile& text) {
  BabiStories result;
  std::map<std::size_t, std::size_t> sentence_of_number;  // of the current story
  std::size_t previous = 0, first = 0;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const auto number_of_line = i + 1;
    const std::string_view line = text.lines[i];
    const auto refuse = [&](std::size_t column, const std::string& what) {
      refuse_input(text.path, number_of_line, column, what);
    };
    if (trimmed(line).empty()) continue;

    std::size_t number = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    std::size_t at = static_cast<std::size_t>(end - line.data());
    if (error != std::errc{} || at >= line.size() || line[at] != ' ')
      refuse(1, "a line must start with its number and a space, e.g. \"1 Mary moved to the bathroom.\"");
    if (number != 1 && (number != previous + 1 || previous == 0))
      refuse(1, previous == 0 ? fmt::format("the first line must have number 1, got {}", number)
                              : fmt::format("expected number {}, or 1 for a new story, got {}", previous + 1, number));
    ++at;
    if (number == 1) {
      first = result.sentences.size();
      sentence_of_number.clear();
      result.stories.emplace_back();
    }
    previous = number;

    const auto tab = line.find('\t', at);
    const auto sentence = line.substr(at, std::min(tab, line.size()) - at);
    if (tab == std::string_view::npos) {
      if (const auto mark = line.find('?', at); mark != std::string_view::npos)  // a statement has no question mark
        refuse(mark + 2, "a question without an answer: expected a tab, the answer, a tab and the supporting lines");
      sentence_of_number[number] = result.sentences.size();
      result.sentences.push_back(words_of(text, number_of_line, at + 1, sentence));
      for (const auto& word : result.sentences.back()) result.stories.back() += word + " ";
      result.stories.back() += "\n";
      continue;
    }

    BabiQuestion question;
    question.story = result.stories.size() - 1;
    question.first = first;
    question.end = result.sentences.size();
    if (question.first == question.end) refuse(at + 1, "a question before any sentence of its story");
    question.words = words_of(text, number_of_line, at + 1, sentence);
    const auto second_tab = std::min(line.find('\t', tab + 1), line.size());
    question.answer = lower_case(trimmed(line.substr(tab + 1, second_tab - tab - 1)));
    if (question.answer.empty()) refuse(tab + 2, "an empty answer");
    for (std::size_t p = second_tab + 1; p < line.size();) {
      if (line[p] == ' ') {
        ++p;
        continue;
      }
      std::size_t fact = 0;
      const auto parsed = std::from_chars(line.data() + p, line.data() + line.size(), fact);
      if (parsed.ec != std::errc{}) refuse(p + 1, "expected the number of a supporting line");
      const auto it = sentence_of_number.find(fact);
      if (it == sentence_of_number.end())
        refuse(p + 1, fmt::format("the supporting line {} is not an earlier sentence of this story", fact));
      question.support.push_back(it->second);
      p = static_cast<std::size_t>(parsed.ptr - line.data());
    }
    result.questions.push_back(std::move(question));
  }
  if (result.questions.empty()) refuse_input(text.path, 0, 0, "holds no question; a question's line has a tab and an answer");
  return result;
}

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
