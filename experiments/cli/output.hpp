// What the program says. A stream that cannot be written changes neither what is done nor how it ends: a full disk that holds
// the log is no reason to lose a sweep.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace hardgrad::cli {

/// Text on stdout; whether it could all be written is asked once, by `finish_output`.
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

/// A word as a shell takes it, without control characters ($'\n').
std::string shell_quoted(const std::string& word);

/// Before anything else: a standard stream that was closed is one that cannot be written, not the next file's number; and a
/// file beyond the largest size allowed cannot be written, where the system's own answer is to end the program in silence.
void begin_output();
/// The exit status: `status`, or 2 (and a message) if that is 0 and stdout could not be written.
int finish_output(int status);

}  // namespace hardgrad::cli
