// Files made by the tests in a folder of their own, and what a refusal says about them.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/support/error.hpp"

namespace hardgrad::testing {

/// A folder that is gone at the end of the test.
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
  /// Writes a file and gives its path.
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

/// The message with which `act` refuses its input, or "accepted"; the path's folder is cut off its front.
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

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace hardgrad::testing
