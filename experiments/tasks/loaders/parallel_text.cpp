// Sentence pairs from tab-separated files, pairs of plain texts and CMUdict.
#include "experiments/tasks/loaders/parallel_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
namespace {

bool blank(std::string_view text) { return text.find_first_not_of(" \t") == std::string_view::npos; }

bool is_phoneme(std::string_view text) {  // ARPAbet: one or two capitals, perhaps a stress digit
  if (!text.empty() && text.back() >= '0' && text.back() <= '2') text.remove_suffix(1);
  return !text.empty() && text.size() <= 2 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

std::vector<TextPair> read_tab_pairs(const std::string& path) {
  const auto text = read_text(path);
  std::vector<TextPair> pairs;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const auto& line = text.lines[i];
    if (blank(line) && line.find('\t') == std::string::npos) continue;
    const auto tab = line.find('\t');
    if (tab == std::string::npos)
      refuse_input(path, i + 1, line.size() + 1, "one column only: expected a tab and the sentence's translation");
    const auto end = std::min(line.find('\t', tab + 1), line.size());
    if (blank(line.substr(0, tab))) refuse_input(path, i + 1, 1, "the first column is empty");
    if (blank(line.substr(tab + 1, end - tab - 1))) refuse_input(path, i + 1, tab + 2, "the second column is empty");
    pairs.push_back({line.substr(0, tab), line.substr(tab + 1, end - tab - 1)});
  }
  if (pairs.empty()) refuse_input(path, 0, 0, "holds no sentence pair");
  return pairs;
}

std::vector<TextPair> read_parallel_text(const std::string& first_path, const std::string& second_path) {
  const auto first = read_text(first_path), second = read_text(second_path);
  if (first.lines.size() != second.lines.size())
    refuse_input(second_path, 0, 0,
                 fmt::format("has {} lines, but {} has {}; line i of one must translate line i of the other",
                             second.lines.size(), first_path, first.lines.size()));
  std::vector<TextPair> pairs;
  bool any = false;
  for (std::size_t i = 0; i < first.lines.size(); ++i) {
    any = any || (!blank(first.lines[i]) && !blank(second.lines[i]));
    pairs.push_back({first.lines[i], second.lines[i]});
  }
  if (!any) refuse_input(first_path, 0, 0, "holds no sentence pair");
  return pairs;
}

std::vector<Pronunciation> read_cmudict(const std::string& path) {
  const auto text = read_text(path);
  std::vector<Pronunciation> entries;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    std::string_view line = text.lines[i];
    if (line.starts_with(";;;") || line.starts_with("#")) continue;
    line = line.substr(0, line.find(" #"));
    if (blank(line)) continue;
    Pronunciation entry;
    for (const auto& [piece, column] : pieces_of(line)) {
      if (entry.word.empty()) {
        entry.word = piece;
        continue;
      }
      if (!is_phoneme(piece))
        refuse_input(path, i + 1, column,
                     fmt::format("\"{}\" is not a phoneme; expected \"word PH OW1 N IY0 M Z\"", piece.substr(0, 40)));
      entry.phonemes.emplace_back(piece);
    }
    if (entry.phonemes.empty()) refuse_input(path, i + 1, line.size() + 1, "a word without phonemes");
    if (const auto open = entry.word.find('('); open != std::string::npos && open > 0) {
      const auto* last = entry.word.data() + entry.word.size();
      const auto [end, error] = std::from_chars(entry.word.data() + open + 1, last, entry.variant);
      if (error != std::errc{} || end + 1 != last || *end != ')' || entry.variant < 1)
        refuse_input(path, i + 1, open + 1, "expected a variant like word(2)");
      entry.word.resize(open);
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) refuse_input(path, 0, 0, "holds no word");
  return entries;
}

}  // namespace hardgrad::tasks
