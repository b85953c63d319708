// Files written by the tests to a temporary folder, and the error messages about them.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/support/error.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::testing {

/// A folder that is removed at the end of the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hardgrad-XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()));
    path_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(*this / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::string write_gz(const std::string& name, const std::string& bytes) const {
    gzFile file = gzopen((*this / name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return *this / name;
  }

 private:
  std::string path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The error message of `act` without the path of the folder; "accepted" if there is no error.
template <class Act>
std::string refusal(const Folder& folder, Act act) {
  try {
    act();
  } catch (const Error& error) {
    std::string what = error.what();
    CHECK(what.find('\n') == std::string::npos);
    CHECK(error.exit_status() == (dynamic_cast<const InputError*>(&error) ? 3 : 2));
    const auto prefix = folder.path() + "/";
    for (auto at = what.find(prefix); at != std::string::npos; at = what.find(prefix)) what.erase(at, prefix.size());
    return what;
  }
  return "accepted";
}

/// A function of bytes: the error message of `read(path)` for a file of this name with these bytes.
template <class Read>
auto says_of(const Folder& folder, const std::string& name, Read read) {
  return [&folder, name, read](const std::string& bytes) {
    const auto path = folder.write(name, bytes);
    return refusal(folder, [&] { read(path); });
  };
}

/// Reads the file 400 times, truncated or with a few flipped bits. Each time it is accepted, or rejected with one line that
/// begins with the file's name. Both must happen.
template <class Read>
void read_damaged(const std::string& whole, int seed, Read read) {
  Folder folder;
  const auto says = says_of(folder, "damaged", read);
  std::mt19937 random(seed);
  int refused = 0, accepted = 0;
  for (int i = 0; i < 400; ++i) {
    auto bytes = whole;
    if (i % 2)
      bytes.resize(random() % bytes.size());
    else
      for (int flips = 0; flips <= i % 3; ++flips) bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
    const auto what = says(bytes);
    (what == "accepted" ? accepted : refused) += 1;
    if (what != "accepted") CHECK(what.starts_with("damaged:"));
  }
  CHECK(refused > 100);
  CHECK(accepted > 20);
}

/// The value of the metric with this name.
inline double value(const std::vector<tasks::Metric>& metrics, const std::string& name) {
  for (const auto& metric : metrics)
    if (metric.name == name) return metric.value();
  FAIL("no metric " << name);
  return 0;
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace hardgrad::testing
