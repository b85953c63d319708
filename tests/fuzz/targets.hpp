// The readers of external files and texts, one target each.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hardgrad::fuzz {

struct Target {
  std::string name;
  std::string file;                                   ///< the input's file name, from which some readers detect the format
  std::vector<std::string> seeds;                     ///< intact inputs, the initial corpus
  std::vector<std::string> words;                     ///< typical fragments of the format
  std::function<void(const std::string& path)> read;  ///< on bad input throws an Error of status 2 or 3, and nothing else
};

/// `folder` receives the other files that a reader needs.
std::vector<Target> targets(const std::string& folder);

}  // namespace hardgrad::fuzz
