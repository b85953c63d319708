// Errors by blame: each carries one clear line (where, what, what would do) and the exit status it leads to.
#pragma once

#include <stdexcept>
#include <string>

namespace hardgrad {

class Error : public std::runtime_error {
 public:
  Error(int exit_status, const std::string& message) : std::runtime_error(message), exit_status_(exit_status) {}
  int exit_status() const { return exit_status_; }

 private:
  int exit_status_;
};

/// The caller asked for something that cannot be: bad option, bad configuration, a place that cannot be written.
struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error(2, message) {}
};

/// What is asked for cannot be had exactly, or has more terms than its cap allows: there may be another way.
struct NotExact : UsageError {
  using UsageError::UsageError;
};

/// A file is missing, damaged or not what it should be.
struct InputError : Error {
  explicit InputError(const std::string& message) : Error(3, message) {}
};

/// A broken promise inside Hardgrad itself.
struct Bug : Error {
  explicit Bug(const std::string& message) : Error(70, "this is a bug in hardgrad: " + message) {}
};

}  // namespace hardgrad
