#include "experiments/cli/manual.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string_view>

#include "experiments/cli/output.hpp"

namespace hardgrad::cli {
namespace {

constexpr std::size_t page = 80, indent = 7, deeper = 11;

std::string in_style(const char* code, const std::string& text) {
  return styled_output() ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

void print_wrapped(const std::string& text, std::size_t margin) {
  for (const auto& line : wrapped(text, page - margin)) put("{}{}\n", std::string(margin, ' '), line);
}

}  // namespace

bool styled_output() {
  const char* none = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && !(none && *none) && term && std::string_view(term) != "dumb";
}

std::string bold(const std::string& text) { return in_style("1", text); }
std::string red(const std::string& text) { return in_style("31", text); }

std::vector<std::string> wrapped(const std::string& text, std::size_t width) {
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    for (auto end = word.rfind('|', width - 1); word.size() > width && end != std::string::npos;
         end = word.rfind('|', width - 1)) {
      lines.push_back(word.substr(0, end + 1));  // a long list of choices
      word.erase(0, end + 1);
    }
    if (lines.empty() || lines.back().size() + 1 + word.size() > width)
      lines.push_back(word);
    else
      (lines.back() += ' ') += word;
  }
  return lines;
}

std::string shortened(const std::string& text, std::size_t width) {
  if (text.size() <= width || width < 4) return text;
  auto cut = text.rfind(' ', width - 3);
  if (cut == std::string::npos) cut = width - 3;
  return text.substr(0, text.find_last_not_of(" ,;:(", cut) + 1) + "...";
}

void Manual::heading(const std::string& title) {
  put("{}{}\n", begun_ ? "\n" : "", bold(title));
  begun_ = true;
}
void Manual::paragraph(const std::string& text) { print_wrapped(text, indent); }
void Manual::definition(const std::string& term, const std::string& text) {
  put("{}{}\n", std::string(indent, ' '), bold(term));
  print_wrapped(text, deeper);
}

}  // namespace hardgrad::cli
