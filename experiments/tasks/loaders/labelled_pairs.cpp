#include "experiments/tasks/loaders/labelled_pairs.hpp"

#include <fmt/format.h>

#include <array>
#include <set>
#include <string_view>

#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {

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

}  // namespace hardgrad::tasks
