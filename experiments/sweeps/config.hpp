// A sweep's configuration: TOML, checked against settings and registries before anything runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/registry/settings.hpp"
#include "experiments/sweeps/settings_table.hpp"

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
  std::size_t trials = 0;                      ///< number of settings sampled at random; 0: all combinations of the choices
  std::vector<std::string> seeds;              ///< of the trials: none of the reported ones
  std::vector<double> rounds{1};               ///< fractions of the training budget, ascending
  double keep = 1.0 / 3;                       ///< the fraction of a round's settings that continue to the next
  std::string metric = "loss";                 ///< a held-out loss or metric; "loss": the ranking one
  tasks::Split split = tasks::Split::heldout;  ///< heldout or test

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

/// One axis: `task`, `model`, `estimator`, `seed` or a setting's path; values in canonical spelling.
struct GridAxis {
  std::string name;
  std::vector<std::string> values;
};

/// GridAxis values by name, which identify a cell.
using AxisValues = std::map<std::string, std::string>;

/// All named axes must match one of their patterns.
struct Condition {
  std::map<std::string, std::vector<std::string>> patterns;
  std::string where;  ///< for messages
  bool matches(const AxisValues& values) const;
};

using SettingValues = std::vector<std::pair<const SettingInfo*, Value>>;

struct Override {
  Condition when;
  SettingValues set;
};

struct SweepConfig {
  std::string file;                    ///< as given
  std::string name, description, out;  ///< out: the folder of cells
  Precision precision = Precision::float32;
  std::vector<std::string> plugins;         ///< shared libraries, as found
  std::uint64_t seed = 0;                   ///< root of all random streams
  std::vector<std::vector<GridAxis>> axes;  ///< the product of these; within one, lists are zipped
  std::vector<Condition> excludes;
  std::vector<Override> overrides;
  std::optional<TuneConfig> tune;  ///< the search for settings before the grid runs
  CellSettings base;
  std::string echo;  ///< the resolved configuration as TOML
};

/// Reads and checks. `sets` holds `a.b=VALUE` texts. UsageError `sweep.toml:12:5: grid.estimator: ...`;
/// InputError if the file cannot be read.
SweepConfig read_config(const std::string& path, const std::vector<std::string>& sets = {});

/// The configuration with every default filled in, as TOML; reading it gives the same sweep.
std::string echo(const SweepConfig& config);

/// `*` and `?` match; a pattern without wildcards and brackets also matches every spec of that name.
bool pattern_matches(const std::string& pattern, const std::string& text);

/// The spec of a registered task, model or estimator in canonical spelling; UsageError if a name is unknown.
std::string canonical_spec(const std::string& kind, const std::string& text);
/// Every parameter of the spec by name, defaults included, as a JSON object; of kind `target`: of an estimator's target.
std::string settings_json(const std::string& kind, const std::string& text);
/// The lines hardgrad::identity_lines of the spec, each with the kind in front; of an estimator also those of its target.
std::string identity_lines(const std::string& kind, const std::string& text);

}  // namespace hardgrad::sweeps
