// Completions for the end of a command line.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hardgrad::cli {

/// A command line up to the cursor, parsed as by its shell.
struct TypedLine {
  std::vector<std::string> words;  ///< before the last one, without the program
  std::string last;                ///< the word at the cursor; may be empty
  std::size_t kept = 0;            ///< its bytes that bash does not replace: up to an opening quote, '=' or ':'
  bool quoted = false;             ///< the cursor is inside quotes
};
TypedLine read_line(const std::string& line);

/// Complete words that start with `line.last`: verbs, options, names, parameters within `name[`, values. Loads the plugins of
/// the line. Empty where a file is expected.
std::vector<std::string> completions(const CLI::App& app, const TypedLine& line);

}  // namespace hardgrad::cli
