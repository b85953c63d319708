// The table [tune] of a sweep's file, checked.
#pragma once

#include <optional>

#include "experiments/sweeps/config.hpp"
#include "experiments/sweeps/toml_source.hpp"

namespace hardgrad::sweeps {

/// Empty if there is no [tune]. The axes and base settings of `config` must be read already. UsageError with the position.
std::optional<TuneConfig> read_tune(const TomlSource& source, const SweepConfig& config);

}  // namespace hardgrad::sweeps
