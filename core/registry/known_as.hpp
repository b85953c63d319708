// Names under which estimators are known elsewhere, and what they are called here.
#pragma once

#include <string>
#include <vector>

namespace hardgrad {

struct KnownAs {
  std::string name;    ///< as its authors or its users write it: "LOORF"
  std::string spec;    ///< what it is here: "rloo"
  std::string paper;   ///< that gave it the name
  std::string reason;  ///< why it is the same

  /// The estimator's name in `spec`.
  std::string estimator() const { return spec.substr(0, spec.find('[')); }
};

/// In alphabetical order.
const std::vector<KnownAs>& known_names();
/// The one of this name, whatever its case and hyphens; null if there is none.
const KnownAs* known_as(const std::string& name);

}  // namespace hardgrad
