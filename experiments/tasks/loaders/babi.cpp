// bAbI files, line by line.
#include "experiments/tasks/loaders/babi.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "core/support/text.hpp"
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

}  // namespace hardgrad::tasks
