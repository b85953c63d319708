// The configuration of [tune]: the tuned settings, their candidate values and the criterion.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/registry/settings.hpp"

namespace hardgrad::sweeps {

/// One tuned setting: choices, or a range to sample from.
struct TunedAxis {
  std::string name;                  ///< a setting's path (train.learning_rate), or estimator.<parameter>
  std::vector<std::string> choices;  ///< in canonical spelling; none: a range
  double low = 0, high = 0;          ///< the range, both ends in it
  bool log = true, whole = false;    ///< sampled log-uniformly, else uniformly; integers
  double least = -std::numeric_limits<double>::infinity();  ///< smallest allowed value of the setting
  double most = std::numeric_limits<double>::infinity();

  bool of_estimator() const { return name.starts_with("estimator."); }
  std::string parameter() const { return name.substr(name.find('.') + 1); }
};

struct TuneConfig {
  std::vector<TunedAxis> axes;
  std::size_t trials = 0;          ///< number of settings sampled at random; 0: all combinations of the choices
  std::vector<std::string> seeds;  ///< of the trials: none of the reported ones
  std::vector<double> rounds{1};   ///< fractions of the training budget, ascending
  double keep = 1.0 / 3;           ///< the fraction of a round's settings that continue to the next
  std::string metric = "loss";     ///< a held-out loss or metric; "loss": the ranking one
  std::string split = "heldout";   ///< heldout | test

  /// `name=value` lines: everything that determines the trials and the choice.
  std::string text() const;
  /// The number of `settings` tried in each round; empty if there is only one, so that no choice is needed.
  std::vector<std::size_t> sizes(std::size_t settings) const;
};

/// Values of the tuned settings by name: one candidate.
using TunedValues = std::map<std::string, std::string>;

/// Whether the tuned setting applies: it is a parameter of this estimator, or not an estimator's parameter.
bool applies(const TunedAxis& axis, const std::string& estimator);

/// The distinct settings to try for an estimator, in order: every combination of the choices (the last varies fastest), or
/// random samples (random search, Bergstra & Bengio 2012). The random stream depends only on the root seed, the name of the
/// tuned setting and the index of the sample, so that all estimators try the same. Fewer than requested if no more exist.
std::vector<TunedValues> settings_to_try(const TuneConfig& tune, std::uint64_t root_seed, const std::string& estimator);

}  // namespace hardgrad::sweeps
