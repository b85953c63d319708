// The kinds of distributions and their properties. Estimators require properties, not a kind by name.
#pragma once

#include <string_view>

namespace hardgrad {

struct SiteKind {
  std::string_view name;  ///< in machine-readable output
  std::string_view is;    ///< in messages, as in "site `place` is a Normal"
  bool options;           ///< a choice is made among finitely many options, so that its answers can be enumerated
  bool several;           ///< an answer is a set of options (SiteDeclaration::picks), not one
  bool relaxable;         ///< an answer may be weights over the options
  bool reparameterised;   ///< an answer can be differentiable in the distribution's parameters
  bool quantiles;         ///< a choice can be drawn from one uniform number by the inverse distribution function
  bool symmetric;         ///< the density is symmetric about its mean, so that draws can be antithetic pairs
  bool measure_valued;    ///< the distribution's derivative is a scaled difference of two distributions that can be sampled

  friend bool operator==(const SiteKind& a, const SiteKind& b) { return a.name == b.name; }
  static const SiteKind categorical, subsets, normal;
};

inline constexpr SiteKind SiteKind::categorical{.name = "categorical",
                                                .is = "categorical",
                                                .options = true,
                                                .several = false,
                                                .relaxable = true,
                                                .reparameterised = false,
                                                .quantiles = true,
                                                .symmetric = false,
                                                .measure_valued = false};
inline constexpr SiteKind SiteKind::subsets{.name = "subset",
                                            .is = "a subset",
                                            .options = true,
                                            .several = true,
                                            .relaxable = true,
                                            .reparameterised = false,
                                            .quantiles = false,
                                            .symmetric = false,
                                            .measure_valued = false};
inline constexpr SiteKind SiteKind::normal{.name = "normal",
                                           .is = "a Normal",
                                           .options = false,
                                           .several = false,
                                           .relaxable = false,
                                           .reparameterised = true,
                                           .quantiles = true,
                                           .symmetric = true,
                                           .measure_valued = true};

}  // namespace hardgrad
