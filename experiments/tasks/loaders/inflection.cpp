#include "experiments/tasks/loaders/inflection.hpp"

#include <fmt/format.h>

#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
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
