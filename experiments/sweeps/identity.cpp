#include "experiments/sweeps/identity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <sstream>

namespace hardgrad::sweeps {
namespace {

std::map<std::string, std::string> lines_of(const std::string& identity) {
  std::map<std::string, std::string> lines;
  std::istringstream in(identity);
  for (std::string line; std::getline(in, line);)
    if (const auto equals = line.find('='); equals != std::string::npos)
      lines[line.substr(0, equals)] = line.substr(equals + 1);
  return lines;
}

}  // namespace

std::vector<std::string> identity_differences(const std::string& before, const std::string& now) {
  const auto old_lines = lines_of(before), new_lines = lines_of(now);
  std::set<std::string> names;
  for (const auto* lines : {&old_lines, &new_lines})
    for (const auto& [name, value] : *lines) names.insert(name);
  std::vector<std::string> found;
  for (const auto& name : names) {
    const auto was = old_lines.find(name), is = new_lines.find(name);
    if (was != old_lines.end() && is != new_lines.end() && was->second == is->second) continue;
    if (name == "data")
      found.push_back("the contents of the task's files have changed");
    else if (name.starts_with("plugin."))
      found.push_back(fmt::format("the {}'s plugin is another build", name.substr(7)));
    else
      found.push_back(fmt::format("{} {} -> {}", name == "root" ? "seed" : name,
                                  was == old_lines.end() ? "(none)" : was->second,
                                  is == new_lines.end() ? "(none)" : is->second));
  }
  return found;
}

std::string identity_difference(const std::string& before, const std::string& now) {
  return fmt::format("{}", fmt::join(identity_differences(before, now), ", "));
}

}  // namespace hardgrad::sweeps
