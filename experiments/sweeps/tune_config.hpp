// What [tune] says: what is tuned, which settings are tried, and how they are judged.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/registry/settings.hpp"

namespace hardgrad::sweeps {

/// One thing that is tuned: choices, or a range to draw from.
struct TunedAxis {
  std::string name;                  ///< a setting's path (train.learning_rate), or estimator.<parameter>
  std::vector<std::string> choices;  ///< in canonical spelling; none: a range
  double low = 0, high = 0;          ///< the range, both ends in it
  bool log = true, whole = false;    ///< drawn log-uniformly, else uniformly; whole numbers
  double least = -std::numeric_limits<double>::infinity();  ///< what the setting itself allows: nothing lies beyond
  double most = std::numeric_limits<double>::infinity();

  bool of_estimator() const { return name.starts_with("estimator."); }
  std::string parameter() const { return name.substr(name.find('.') + 1); }
};

struct TuneConfig {
  std::vector<TunedAxis> axes;
  std::size_t trials = 0;          ///< settings drawn at random; 0: all combinations of the choices
  std::vector<std::string> seeds;  ///< of the trials: none of those that are reported
  std::vector<double> rounds{1};   ///< shares of the training budget, ascending: settings are tried at ever longer ones
  double keep = 1.0 / 3;           ///< the share of a round's settings that goes on to the next
  std::string metric = "loss";     ///< a held-out loss or metric; "loss": the one that ranks
  std::string split = "heldout";   ///< heldout | test

  /// `name=value` lines: all that decides what is tried and chosen.
  std::string text() const;
  /// How many of `settings` are tried in each round; none where a single one is left: there is nothing to choose.
  std::vector<std::size_t> sizes(std::size_t settings) const;
};

/// By name the values of what is tuned: one setting to try.
using TunedValues = std::map<std::string, std::string>;

/// Whether what is tuned is a parameter of this estimator, or no estimator's.
bool applies(const TunedAxis& axis, const std::string& estimator);

/// The settings to try of an estimator, all different, in order: every combination of the choices (the last named walks
/// fastest), or draws (Bergstra & Bengio 2012, random search) from a stream that depends on the root seed, the name of what is
/// tuned and the number of the draw alone, so that all estimators try the same. Fewer than asked for where there are no more.
std::vector<TunedValues> settings_to_try(const TuneConfig& tune, std::uint64_t root_seed, const std::string& estimator);

}  // namespace hardgrad::sweeps
