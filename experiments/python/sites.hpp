// A structure as Python passes it: its sites as tuples.
#pragma once

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "core/choice/structure.hpp"

namespace hardgrad::python {

/// name, options, columns, times, width of the state, the number of its reach (choice/structure.hpp), and the options of a
/// subset (0: choices are one option each)
using SiteTuple = std::tuple<std::string, int, int, int, int, int, int>;

inline Structure structure_of(const std::vector<SiteTuple>& sites, bool posterior) {
  Structure structure;
  structure.posterior = posterior;
  for (const auto& [name, options, columns, times, width, reach, picks] : sites)
    structure.sites.push_back({.name = name,
                               .options = options,
                               .picks = std::max(1, picks),
                               .times = times,
                               .state_width = width,
                               .reach = static_cast<Reach>(reach),
                               .kind = picks > 0 ? SiteKind::subsets : SiteKind::categorical,
                               .columns = columns});
  return structure;
}

/// The options of a site's subsets, or 0.
inline int picks_of(const SiteDeclaration& site) { return site.kind.several ? site.picks : 0; }

inline std::vector<SiteTuple> sites_of(const Structure& structure) {
  std::vector<SiteTuple> sites;
  for (const auto& site : structure.sites)
    sites.emplace_back(site.name, site.options, site.columns, site.times, site.state_width, static_cast<int>(site.reach),
                       picks_of(site));
  return sites;
}

}  // namespace hardgrad::python
