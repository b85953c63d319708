// The kinds of distributions, and what can be done with choices of each: estimators ask for that, not for a name.
#pragma once

#include <string_view>

namespace hardgrad {

struct SiteKind {
  std::string_view name;  ///< for programs that read
  std::string_view is;    ///< as in "site `place` is a Normal"
  bool options;           ///< a choice is one of finitely many options: they can be visited one by one
  bool relaxable;         ///< an answer may be weights over the options
  bool reparameterised;   ///< an answer can be differentiable in the distribution's parameters
  bool quantiles;         ///< a choice can be had from one uniform number, by the inverse distribution function
  bool symmetric;         ///< the mirror image of a draw is a draw: draws come in antithetic pairs
  bool measure_valued;    ///< its derivative is a difference of two distributions that can be drawn from

  friend bool operator==(const SiteKind& a, const SiteKind& b) { return a.name == b.name; }
  static const SiteKind categorical, normal;
};

inline constexpr SiteKind SiteKind::categorical{.name = "categorical",
                                                .is = "categorical",
                                                .options = true,
                                                .relaxable = true,
                                                .reparameterised = false,
                                                .quantiles = true,
                                                .symmetric = false,
                                                .measure_valued = false};
inline constexpr SiteKind SiteKind::normal{.name = "normal",
                                           .is = "a Normal",
                                           .options = false,
                                           .relaxable = false,
                                           .reparameterised = true,
                                           .quantiles = true,
                                           .symmetric = true,
                                           .measure_valued = true};

}  // namespace hardgrad
