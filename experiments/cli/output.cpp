#include "experiments/cli/output.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "experiments/support/utf8.hpp"

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

}  // namespace hardgrad::cli
