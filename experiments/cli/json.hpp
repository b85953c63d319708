// JSON output of the program.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace hardgrad::cli {

/// A number; null if it is not finite, which JSON cannot represent.
nlohmann::json number(double value);
/// Prints JSON to stdout.
void print_json(const nlohmann::json& json);

}  // namespace hardgrad::cli
