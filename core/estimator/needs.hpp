// The needs of an estimator: it declares them, and works only on models that meet them. Refusals, pages and the table of
// supported networks are made from these declarations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/choice/structure.hpp"

namespace hardgrad {

/// One need: of every site, or of the network.
struct Need {
  enum class Kind {
    log_density,      ///< of a site: choices can be drawn and have a log probability
    categorical,      ///< of a site: categories
    bits,             ///< of a site: categories, two at most
    options,          ///< of a site: categories, at most `most` of them
    enumerable,       ///< of a site: its choices can be visited one by one
    relaxable,        ///< of a site: categories that can be answered with weights over their options
    codes,            ///< of a site: categories that are points of a space
    picks,            ///< of a site: choices of one or several of its options
    reparameterised,  ///< of a site: its choices can be differentiable in the distribution's parameters
    quantiles,        ///< of a site: choices with an inverse distribution function
    symmetric,        ///< of a site: numbers whose mirror image has the same distribution
    measure_valued,   ///< of a site: bits, or numbers with a measure-valued derivative
    posterior,        ///< of the network: a learned posterior
    dreams,           ///< of the network: it can draw its own answers (labels, sentences)
    no_choice         ///< supports a network without choices, too
  };
  Kind kind;
  int most = 0;
  const char* why = "";  ///< of `options`: the cost of more options

  friend bool operator==(const Need& a, const Need& b) { return a.kind == b.kind && a.most == b.most; }
};

namespace need {
inline constexpr Need log_density{Need::Kind::log_density}, categorical{Need::Kind::categorical}, bits{Need::Kind::bits},
    enumerable{Need::Kind::enumerable}, relaxable{Need::Kind::relaxable}, codes{Need::Kind::codes}, picks{Need::Kind::picks},
    reparameterised{Need::Kind::reparameterised}, quantiles{Need::Kind::quantiles}, symmetric{Need::Kind::symmetric},
    measure_valued{Need::Kind::measure_valued}, posterior{Need::Kind::posterior}, dreams{Need::Kind::dreams},
    no_choice{Need::Kind::no_choice};
constexpr Need options(int most, const char* why) { return {Need::Kind::options, most, why}; }
}  // namespace need

/// As text after "needs": "bits", "at most 64 options", "a learned posterior".
std::string to_string(const Need& need);
/// The name of its kind, for machine-readable output: "bits", "options", ...
std::string kind_name(const Need& need);
/// Why the structure does not meet the needs, naming the site; empty if it does. An estimator that declares no need of any site
/// works on no model.
std::optional<std::string> unmet(const std::vector<Need>& needs, const Structure& structure);
/// True if some need concerns the choices of a site.
bool declares_a_site(const std::vector<Need>& needs);

}  // namespace hardgrad
