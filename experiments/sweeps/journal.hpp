// The journal of a sweep: one JSON object per line, append-only; an incomplete last line is ignored.
#pragma once

#include <functional>
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

  /// f(event) for each readable line in order; none if there is no file.
  static void each(const std::string& path, const std::function<void(const nlohmann::json&)>& f);
  /// All of them.
  static std::vector<nlohmann::json> read(const std::string& path);

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace hardgrad::sweeps
