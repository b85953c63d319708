// A sweep's configuration: TOML, checked against settings and registries before anything runs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/sweeps/settings_table.hpp"
#include "experiments/sweeps/tune_config.hpp"

namespace hardgrad::sweeps {

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
  std::string file;                         ///< as given
  std::string name, description, out;       ///< out: the folder of cells
  std::string precision = "float";          ///< float | double
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
