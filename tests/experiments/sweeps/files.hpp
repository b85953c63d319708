// A temporary folder for one test; sweeps written to it.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/support/error.hpp"
#include "experiments/sweeps/config.hpp"
#include "experiments/sweeps/plan.hpp"

namespace hardgrad::testing {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "hardgrad_sweep_XXXXXX").string();
    if (!mkdtemp(name.data())) throw Bug("no temporary folder");
    path_ = name;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void put(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
inline std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// The configuration in a text, read as the file sweep.toml.
inline sweeps::SweepConfig config_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  TestFolder folder;
  put(folder / "sweep.toml", text);
  return sweeps::read_config(folder / "sweep.toml", sets);
}

inline sweeps::Plan plan_of(const std::string& text) {
  sweeps::TaskPool tasks;
  return sweeps::make_plan(config_of(text), tasks);
}

/// The error message for a configuration, with the file's name as its path; "" if it is valid.
inline std::string complaint(const std::string& text, const std::vector<std::string>& sets = {}) {
  TestFolder folder;
  const auto path = folder / "sweep.toml";
  put(path, text);
  try {
    sweeps::read_config(path, sets);
  } catch (const UsageError& e) {
    std::string message = e.what();
    for (auto at = message.find(path); at != std::string::npos; at = message.find(path))
      message.replace(at, path.size(), "sweep.toml");
    return message;
  }
  return "";
}

}  // namespace hardgrad::testing
