// Output of the program: text, JSON, tables, pages of a manual, plots. An unwritable stream does not stop the work: a full disk
// for the log must not lose a sweep.
#pragma once

#include <fmt/format.h>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/support/text.hpp"

namespace hardgrad::storage {
struct StaleTempFile;
}

namespace hardgrad::cli {

/// Writes text to stdout; `finish_output` checks errors once, at the end.
void put_text(const std::string& text);
template <class... Args>
void put(fmt::format_string<Args...> format, Args&&... args) {
  put_text(fmt::format(format, std::forward<Args>(args)...));
}

/// "hardgrad: <message>" on stderr: one line without control characters.
void complain(const std::string& message);
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  complain("warning: " + fmt::format(format, std::forward<Args>(args)...));
}

/// A word quoted for a shell, without control characters ($'\n').
std::string shell_quoted(const std::string& word);

/// Call first. A closed standard stream becomes unwritable, so that the next opened file does not get its number. A write
/// beyond the file size limit becomes an error; by default the system would end the program silently.
void begin_output();
/// The exit status: `status`, or 2 (and a message) if that is 0 and stdout could not be written, unless its reader has gone.
int finish_output(int status);

// JSON output of the program.

/// A number; null if it is not finite, which JSON cannot represent.
nlohmann::json number(double value);
/// An object of such numbers.
nlohmann::json numbers(const std::map<std::string, double>& values);
/// Prints JSON to stdout.
void print_json(const nlohmann::json& json);

// Formats numbers, counts and tables for people.

/// Prints aligned columns; the first row is the heading. Columns marked 'r' in `alignment` are right-aligned. The last column
/// is shortened so that no line is wider than `most` characters.
void print_table(std::vector<std::vector<std::string>> rows, const std::string& alignment,
                 std::size_t most = std::string::npos);
/// "1.23e-05", "-" for NaN
std::string short_number(double value);
/// "12 B", "3.2 GB"
std::string size_text(double bytes);
/// Number and size of half-written files of killed processes, and how to remove them; empty if there are none.
std::string stale_files_text(const std::vector<storage::StaleTempFile>& stale_files);

// Text in the style of a manual page: headings, indented paragraphs, definitions; at most as wide as the terminal or 80.

/// True on a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb.
bool styled_output();
/// Bold, or red for failures, if `styled_output`.
std::string bold(const std::string& text);
std::string red(const std::string& text);

/// Lines of at most `width` characters, broken at spaces; longer words are not broken.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);
/// At most `width` characters: cut at a word, with "..." for the omitted part.
std::string shortened(const std::string& text, std::size_t width);

class Manual {
 public:
  void heading(const std::string& title);
  void paragraph(const std::string& text);
  /// A term, and its indented explanation.
  void definition(const std::string& term, const std::string& text);

 private:
  bool begun_ = false;
};

// Curves drawn with letters, for terminals.

/// A curve, drawn with one character (ASCII).
struct Series {
  char mark;
  std::vector<std::pair<double, double>> points;  ///< x, y in order of x
};

/// `height` lines of at most `width` characters, including the axis, with the smallest and largest values beside them. Where
/// curves meet, the first is visible. A single line if there is nothing to draw.
std::vector<std::string> plot(const std::vector<Series>& series, int width, int height);

}  // namespace hardgrad::cli
