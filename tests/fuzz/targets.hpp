// What reads files and texts from outside, one target each.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace hardgrad::fuzz {

struct Target {
  std::string name;
  std::string file;                                   ///< what the input is called; the name tells some readers what it is
  std::vector<std::string> seeds;                     ///< whole inputs to begin with
  std::vector<std::string> words;                     ///< what the format is made of
  std::function<void(const std::string& path)> read;  ///< throws an Error of status 2 or 3 on bad input, and nothing else
};

/// `folder` is for the files that stand beside an input.
std::vector<Target> targets(const std::string& folder);

}  // namespace hardgrad::fuzz
