#include "experiments/cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "core/support/text.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::cli {
namespace {

int first_error = 0;  // of stdout

}  // namespace

void put_text(const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() && !first_error) first_error = errno ? errno : EIO;
}

void complain(const std::string& message) {
  std::fflush(stdout);
  const auto line = "hardgrad: " + printable(message) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

std::string shell_quoted(const std::string& word) {
  const auto harmless = [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-_./,:@%+=").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), harmless)) return word;
  if (printable(word) != word) {  // $'...' supports the escapes \n and \x1b; special characters are escaped
    std::string text = "$'";
    for (char c : word) text += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    return printable(text) + "'";
  }
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

void begin_output() {
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding `ulimit -f` becomes a write error, which is reported
  // Opened in the wrong direction, so that using it still fails.
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0) (void)!::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int finish_output(int status) {
  errno = 0;
  if (std::fflush(stdout) != 0 && !first_error) first_error = errno;
  if ((!first_error && !std::ferror(stdout)) || first_error == EPIPE) return status;  // EPIPE: the reader closed the pipe
  complain(std::string("standard output cannot be written: ") + std::strerror(first_error ? first_error : EIO));
  return status ? status : 2;
}

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

nlohmann::json numbers(const std::map<std::string, double>& values) {
  auto object = nlohmann::json::object();
  for (const auto& [name, value] : values) object[name] = number(value);
  return object;
}

void print_json(const nlohmann::json& json) { put("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)); }

void print_table(std::vector<std::vector<std::string>> rows, const std::string& alignment, std::size_t most) {
  std::vector<std::size_t> width;
  const auto length = [](const std::string& text) {  // of UTF-8, in characters
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), std::not_fn(continues_character)));
  };
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], length(row[i]));
  }
  if (most != std::string::npos) {
    std::size_t before = 0;
    for (std::size_t i = 0; i + 1 < width.size(); ++i) before += width[i] + 2;
    width.back() = 0;
    for (auto& row : rows)
      if (row.size() == width.size() && before < most) {
        row.back() = shortened(row.back(), most - before);
        width.back() = std::max(width.back(), length(row.back()));
      }
  }
  for (const auto& row : rows) {
    const bool heading = &row == &rows.front();
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(width[i] - length(row[i]), ' ');
      const bool right = i < alignment.size() && alignment[i] == 'r';
      line += (i ? "  " : "") + (right ? gap + row[i] : row[i] + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    put("{}\n", heading ? bold(line) : line);
  }
}

std::string short_number(double value) {
  return std::isnan(value) ? "-" : std::isinf(value) ? "infinite" : fmt::format("{:.3g}", value);
}

std::string size_text(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string stale_files_text(const std::vector<storage::StaleTempFile>& stale_files) {
  if (stale_files.empty()) return {};
  double bytes = 0;
  for (const auto& stale : stale_files) bytes += static_cast<double>(stale.bytes);
  return fmt::format("{} that killed processes left half-written ({}): the next run removes {}",
                     counted(stale_files.size(), "file"), size_text(bytes), stale_files.size() == 1 ? "it" : "them");
}

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

namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// 0 to 1
  double place(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

}  // namespace

std::vector<std::string> plot(const std::vector<Series>& series, int width, int height) {
  Range x, y;
  for (const auto& s : series)
    for (const auto& [at, value] : s.points)
      if (std::isfinite(at) && std::isfinite(value)) x.add(at), y.add(value);
  if (!(x.low <= x.high)) return {"(nothing logged yet)"};
  const auto top = fmt::format("{:.4g}", y.high), bottom = fmt::format("{:.4g}", y.low);
  const int margin = static_cast<int>(std::max(top.size(), bottom.size())) + 1;
  const int columns = std::max(8, width - margin - 1), rows = std::max(3, height - 2);
  std::vector<std::string> grid(static_cast<std::size_t>(rows), std::string(static_cast<std::size_t>(columns), ' '));
  const auto column = [&](double at) { return static_cast<int>(std::lround(x.place(at) * (columns - 1))); };
  const auto row = [&](double value) { return static_cast<int>(std::lround((1 - y.place(value)) * (rows - 1))); };
  for (const auto& s : series) {
    const std::pair<double, double>* before = nullptr;
    for (const auto& point : s.points) {
      if (!std::isfinite(point.first) || !std::isfinite(point.second)) continue;
      const int to = column(point.first), from = before ? column(before->first) : to;
      for (int c = std::min(before ? from + 1 : to, to); c <= to; ++c) {  // linear interpolation
        const double share = to > from ? static_cast<double>(c - from) / (to - from) : 1;
        const double value = before ? before->second + share * (point.second - before->second) : point.second;
        auto& place = grid[static_cast<std::size_t>(row(value))][static_cast<std::size_t>(c)];
        if (place == ' ') place = s.mark;
      }
      before = &point;
    }
  }
  std::vector<std::string> lines;
  lines.reserve(rows + 2);
  for (int r = 0; r < rows; ++r)
    lines.push_back(fmt::format("{:>{}}|{}",
                                r == 0          ? top
                                : r == rows - 1 ? bottom
                                                : "",
                                margin, grid[static_cast<std::size_t>(r)]));
  lines.push_back(fmt::format("{:>{}}+{}", "", margin, std::string(static_cast<std::size_t>(columns), '-')));
  const auto left = fmt::format("{:.6g}", x.low), right = fmt::format("{:.6g}", x.high);
  lines.push_back(fmt::format("{:>{}} {}{:>{}}", "", margin, left, right,
                              std::max<int>(static_cast<int>(right.size()), columns - static_cast<int>(left.size()))));
  return lines;
}

}  // namespace hardgrad::cli
