// Text that reads like a manual page: headings, indented paragraphs, definitions; never wider than the terminal or 80.
#pragma once

#include <string>
#include <vector>

namespace hardgrad::cli {

/// True on a terminal, unless NO_COLOR is set (no-color.org) or it is a dumb one.
bool styled_output();
/// Bold, or red where something failed, if `styled_output`.
std::string bold(const std::string& text);
std::string red(const std::string& text);

/// Lines of at most `width` characters, broken at spaces; longer words stay whole.
std::vector<std::string> wrapped(const std::string& text, std::size_t width);
/// At most `width` characters: cut at a word, with "..." for what is left out.
std::string shortened(const std::string& text, std::size_t width);

class Manual {
 public:
  void heading(const std::string& title);
  void paragraph(const std::string& text);
  /// A term, and what it is, further in.
  void definition(const std::string& term, const std::string& text);
  /// A line as it stands.
  void line(const std::string& text);

 private:
  bool begun_ = false;
};

}  // namespace hardgrad::cli
