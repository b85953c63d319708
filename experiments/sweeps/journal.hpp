// The journal of a sweep: one JSON object per line, append-only; an incomplete last line is ignored.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace hardgrad::sweeps {

class Journal {
 public:
  /// Opens for appending and creates the file if needed; first ends an incomplete last line. UsageError on failure.
  explicit Journal(const std::string& path);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  /// Adds the time and writes the line in one call, so that lines of several processes do not mix.
  void append(nlohmann::json event);

  /// All readable lines in order; empty if there is no file.
  static std::vector<nlohmann::json> read(const std::string& path);

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace hardgrad::sweeps
