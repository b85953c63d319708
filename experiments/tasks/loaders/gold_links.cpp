#include "experiments/tasks/loaders/gold_links.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "experiments/support/text.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
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

}  // namespace hardgrad::tasks
