// What the program says as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace hardgrad::cli {

/// A number; null if it is not finite, which JSON cannot say.
nlohmann::json number(double value);
/// Pure JSON on stdout.
void print_json(const nlohmann::json& json);

}  // namespace hardgrad::cli
