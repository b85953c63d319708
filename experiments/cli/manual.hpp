// Text in the style of a manual page: headings, indented paragraphs, definitions; at most as wide as the terminal or 80.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::cli {

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

}  // namespace hardgrad::cli
