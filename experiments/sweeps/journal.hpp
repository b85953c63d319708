// The journal of a sweep: one JSON object a line, only ever appended; a torn last line is no harm.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace hardgrad::sweeps {

class Journal {
 public:
  /// Opens for appending, creating it; a torn last line is closed with a newline first. UsageError if it
  /// cannot be.
  explicit Journal(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  /// Adds the time and writes the line in one call, so that lines of several processes never mix.
  void append(nlohmann::json event);

  /// All readable lines, in order; none if there is no file.
  static std::vector<nlohmann::json> read(const std::string& path);

 private:
  std::string path_;
  int file_ = -1;
};

/// The present time as 2024-05-01T12:00:00Z.
std::string now_utc();

}  // namespace hardgrad::sweeps
