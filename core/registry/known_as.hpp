// Names of estimators in the literature, and the corresponding specs here.
#pragma once

#include <string>
#include <vector>

namespace hardgrad {

struct KnownAs {
  std::string name;    ///< in the literature: "LOORF"
  std::string spec;    ///< here: "rloo"
  std::string paper;   ///< the source of the name
  std::string reason;  ///< why the two are the same

  /// The estimator's name in `spec`.
  std::string estimator() const { return spec.substr(0, spec.find('[')); }
};

/// In alphabetical order.
const std::vector<KnownAs>& known_names();
/// The entry of this name, ignoring case, hyphens and underscores; null if there is none.
const KnownAs* known_as(const std::string& name);

}  // namespace hardgrad
