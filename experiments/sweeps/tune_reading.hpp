// The table [tune] of a sweep's file, checked.
#pragma once

#include <optional>

#include "experiments/sweeps/config.hpp"
#include "experiments/sweeps/toml_source.hpp"

namespace hardgrad::sweeps {

/// Nothing if there is no [tune]. `config`: its axes and base settings are read already. UsageError with the place.
std::optional<TuneConfig> read_tune(const TomlSource& source, const SweepConfig& config);

}  // namespace hardgrad::sweeps
