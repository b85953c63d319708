#include "experiments/tasks/loaders/pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include "experiments/support/text.hpp"
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

namespace {

std::optional<int> number(std::string_view text) { return text.starts_with('-') ? std::nullopt : number_of<int>(text); }

std::string cut(std::string_view text) { return std::string(text.substr(0, 40)); }

/// Reads the links of a file; errors have line and column.
class LinkReader {
 public:
  LinkReader(const std::string& path, const std::vector<PairLengths>& pairs)
      : path_(path), pairs_(pairs), links_(pairs.size()) {}

  void pharaoh(std::size_t line, std::size_t pair, const std::vector<Piece>& pieces) {
    for (const auto& [text, column] : pieces) {
      const auto at = text.find_first_of("-?");
      const auto source = number(text.substr(0, at));
      const auto target = at == std::string_view::npos ? std::nullopt : number(text.substr(at + 1));
      if (!source || !target)
        refuse_input(path_, line, column, fmt::format("\"{}\" is not a link; expected \"0-0 1-2 2?3\"", cut(text)));
      add(line, column, pair, {*source, *target}, text[at] == '-', 0);
    }
  }
  void columns(std::size_t line, const std::vector<Piece>& pieces) {
    const bool marked = pieces.size() == 4 && (pieces[3].text == "S" || pieces[3].text == "P");
    std::vector<int> values;
    for (std::size_t i = 0; i < pieces.size() && i < 3; ++i)
      if (const auto value = number(pieces[i].text)) values.push_back(*value);
    if (values.size() != 3 || (pieces.size() != 3 && !marked))
      refuse_input(path_, line, 1, "expected \"sentence source target\", optionally with S or P");
    if (values[0] < 1 || static_cast<std::size_t>(values[0]) > pairs_.size())
      refuse_input(path_, line, pieces[0].column, fmt::format("sentence {} of {}, numbered from 1", values[0], pairs_.size()));
    if (values[1] == 0 || values[2] == 0) return;  // NULL
    add(line, pieces[1].column, static_cast<std::size_t>(values[0]) - 1, {values[1] - 1, values[2] - 1},
        !marked || pieces[3].text == "S", 1);
  }
  std::vector<GoldLinks> links() && { return std::move(links_); }

 private:
  void add(std::size_t line, std::size_t column, std::size_t pair, Link link, bool sure, int first) {
    const auto [source, target] = pairs_[pair];
    if (link.first >= source || link.second >= target)
      refuse_input(path_, line, column,
                   fmt::format("a link of source word {} and target word {}, but the pair has {} and {} (numbered from {})",
                               link.first + first, link.second + first, source, target, first));
    links_[pair].add(link, sure);
  }
  const std::string& path_;
  const std::vector<PairLengths>& pairs_;
  std::vector<GoldLinks> links_;
};

}  // namespace

std::vector<GoldLinks> read_gold_links(const std::string& path, const std::vector<PairLengths>& pairs) {
  const auto text = read_text(path);
  std::vector<std::vector<Piece>> lines;
  for (const auto& line : text.lines) lines.push_back(pieces_of(line));
  const std::vector<Piece>* first = nullptr;
  for (const auto& line : lines)
    if (!first && !line.empty()) first = &line;
  if (!first) refuse_input(path, 0, 0, "holds no link");
  LinkReader reader(path, pairs);
  if (first->front().text.find_first_of("-?") == std::string_view::npos) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (!lines[i].empty()) reader.columns(i + 1, lines[i]);
  } else {
    if (lines.size() != pairs.size())
      refuse_input(
          path, 0, 0,
          fmt::format("has {} lines for {} sentence pairs; line i has the links of pair i", lines.size(), pairs.size()));
    for (std::size_t i = 0; i < lines.size(); ++i) reader.pharaoh(i + 1, i, lines[i]);
  }
  return std::move(reader).links();
}

std::vector<LabelledTexts> read_labelled_pairs(const std::string& path) {
  constexpr std::size_t most_labels = 1000;
  constexpr std::array names = {"label", "first sentence", "second sentence"};
  std::vector<LabelledTexts> pairs;
  std::set<std::string> labels;
  const auto text = read_text(path);
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string_view line = text.lines[i];
    if (line.find_first_not_of(' ') == std::string_view::npos) continue;
    std::array<std::string, names.size()> columns;
    std::size_t at = 0;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const bool last = c + 1 == columns.size();
      const auto tab = line.find('\t', at);
      if ((tab == std::string_view::npos) != last)
        refuse_input(
            path, i + 1, (last ? tab : line.size()) + 1,
            fmt::format("{} than three columns: expected \"label TAB sentence TAB sentence\"", last ? "more" : "fewer"));
      columns[c] = line.substr(at, tab - at);
      if (columns[c].find_first_not_of(" \t") == std::string::npos)
        refuse_input(path, i + 1, at + 1, fmt::format("the {} is empty", names[c]));
      at = tab + 1;
    }
    labels.insert(columns[0]);
    if (labels.size() > most_labels)
      refuse_input(path, i + 1, 1, fmt::format("more than {} different labels: is the first column the label?", most_labels));
    pairs.push_back({std::move(columns[0]), std::move(columns[1]), std::move(columns[2])});
  }
  if (pairs.empty()) refuse_input(path, 0, 0, "holds no pair of sentences");
  return pairs;
}

namespace {

/// Calls f(columns) with the columns of every line that is not blank.
template <class F>
void each_line(const std::string& path, std::size_t count, const char* expected, F f) {
  const auto text = read_text(path);
  bool any = false;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const auto& line = text.lines[i];
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    std::vector<std::string> columns;
    for (std::size_t at = 0;;) {
      const auto end = std::min(line.find('\t', at), line.size());
      columns.push_back(line.substr(at, end - at));
      if (columns.back().find_first_not_of(' ') == std::string::npos)
        refuse_input(path, i + 1, at + 1, fmt::format("column {} is empty; expected \"{}\"", columns.size(), expected));
      if (end == line.size()) break;
      at = end + 1;
    }
    if (columns.size() != count)
      refuse_input(path, i + 1, 1, fmt::format("{} columns; expected \"{}\"", columns.size(), expected));
    f(columns);
    any = true;
  }
  if (!any) refuse_input(path, 0, 0, "holds no word");
}

}  // namespace

std::vector<InflectedForm> read_inflections(const std::string& path) {
  std::vector<InflectedForm> forms;
  each_line(path, 3, "lemma TAB form TAB feature;feature", [&](const std::vector<std::string>& columns) {
    InflectedForm form{columns[0], columns[1], {}};
    for (std::size_t at = 0; at < columns[2].size();) {
      const auto end = std::min(columns[2].find(';', at), columns[2].size());
      if (end > at) form.features.push_back(columns[2].substr(at, end - at));
      at = end + 1;
    }
    forms.push_back(std::move(form));
  });
  return forms;
}

std::vector<Transcription> read_transcriptions(const std::string& path) {
  std::vector<Transcription> words;
  each_line(path, 2, "word TAB s o u n d s", [&](const std::vector<std::string>& columns) {
    words.push_back({columns[0], between_blanks(columns[1])});
  });
  return words;
}

}  // namespace hardgrad::tasks
