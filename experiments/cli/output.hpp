// Output of the program. An unwritable stream does not stop the work: a full disk for the log must not lose a sweep.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

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

}  // namespace hardgrad::cli
