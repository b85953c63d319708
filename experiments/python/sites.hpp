// A structure as Python passes it: its sites as tuples.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "core/choice/structure.hpp"

namespace hardgrad::python {

/// name, options, columns, times, width of the state, and the number of its reach (choice/structure.hpp)
using SiteTuple = std::tuple<std::string, int, int, int, int, int>;

inline Structure structure_of(const std::vector<SiteTuple>& sites, bool posterior) {
  Structure structure;
  structure.posterior = posterior;
  for (const auto& [name, options, columns, times, width, reach] : sites)
    structure.sites.push_back({.name = name,
                               .options = options,
                               .times = times,
                               .state_width = width,
                               .reach = static_cast<Reach>(reach),
                               .columns = columns});
  return structure;
}

inline std::vector<SiteTuple> sites_of(const Structure& structure) {
  std::vector<SiteTuple> sites;
  for (const auto& site : structure.sites)
    sites.emplace_back(site.name, site.options, site.columns, site.times, site.state_width, static_cast<int>(site.reach));
  return sites;
}

}  // namespace hardgrad::python
