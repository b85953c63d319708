// Errors by cause. Each has a one-line message (where, the error, the accepted input) and an exit status.
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

/// A request that cannot be fulfilled: a bad option, a bad configuration, or a path that cannot be written.
struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error(2, message) {}
};

/// An exact value that cannot be computed, or that has more terms than its cap allows. Callers may use another method.
struct NotExact : UsageError {
  using UsageError::UsageError;
};

/// A file that is missing, damaged or of the wrong kind.
struct InputError : Error {
  explicit InputError(const std::string& message) : Error(3, message) {}
};

/// A violated invariant inside Hardgrad.
struct Bug : Error {
  explicit Bug(const std::string& message) : Error(70, "this is a bug in hardgrad: " + message) {}
};

}  // namespace hardgrad
