// What an estimator needs of a model: declared, and refused by default. Refusals, pages and the table of what works where are
// made of these declarations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/choice/structure.hpp"

namespace hardgrad {

/// One thing an estimator needs of every site, or of the network.
struct Need {
  enum class Kind {
    log_density,      ///< of a site: choices can be drawn and have a log probability
    categorical,      ///< of a site: categories
    bits,             ///< of a site: categories, two at most
    options,          ///< of a site: categories, `most` at most
    enumerable,       ///< of a site: its choices can be visited one by one
    relaxable,        ///< of a site: an answer may be weights over its options
    reparameterised,  ///< of a site: an answer can be differentiable in the distribution's parameters
    quantiles,        ///< of a site: choices with an inverse distribution function
    symmetric,        ///< of a site: numbers whose mirror image is a draw too
    measure_valued,   ///< of a site: bits, or numbers whose derivative is a difference of two distributions
    posterior,        ///< of the network: a learned posterior
    dreams,           ///< of the network: it can draw what it is judged by
    no_choice         ///< works on a network that makes no choice, too
  };
  Kind kind;
  int most = 0;
  const char* why = "";  ///< of `options`: what more of them would cost

  friend bool operator==(const Need& a, const Need& b) { return a.kind == b.kind && a.most == b.most; }
};

namespace need {
inline constexpr Need log_density{Need::Kind::log_density}, categorical{Need::Kind::categorical}, bits{Need::Kind::bits},
    enumerable{Need::Kind::enumerable}, relaxable{Need::Kind::relaxable}, reparameterised{Need::Kind::reparameterised},
    quantiles{Need::Kind::quantiles}, symmetric{Need::Kind::symmetric}, measure_valued{Need::Kind::measure_valued},
    posterior{Need::Kind::posterior}, dreams{Need::Kind::dreams}, no_choice{Need::Kind::no_choice};
constexpr Need options(int most, const char* why) { return {Need::Kind::options, most, why}; }
}  // namespace need

/// In words, as in "needs ...": "bits", "at most 64 options", "a learned posterior".
std::string to_string(const Need& need);
/// The name of its kind, for programs that read: "bits", "options", ...
std::string kind_name(const Need& need);
/// Why the structure does not give what is needed, with the site that does not; nothing if it does. Whoever declares no need of
/// any site works nowhere.
std::optional<std::string> unmet(const std::vector<Need>& needs, const Structure& structure);
/// True if a site's distribution is among what the needs speak of.
bool declares_a_site(const std::vector<Need>& needs);

}  // namespace hardgrad
