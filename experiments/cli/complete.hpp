// What may stand at the end of a command line.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hardgrad::cli {

/// A command line up to the cursor, as its shell reads it.
struct TypedLine {
  std::vector<std::string> words;  ///< before the last one, without the program
  std::string last;                ///< the word at the cursor; may be empty
  std::size_t kept = 0;            ///< bytes of it that bash leaves as they are: up to an opening quote, '=' or ':'
  bool quoted = false;             ///< the cursor is within quotes
};
TypedLine read_line(const std::string& line);

/// Whole words that `line.last` may become: verbs, options, names, parameters within `name[`, values. Plugins that the
/// line names are loaded. None where a file is wanted.
std::vector<std::string> completions(const CLI::App& app, const TypedLine& line);

}  // namespace hardgrad::cli
