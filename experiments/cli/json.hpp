// JSON output of the program.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace hardgrad::cli {

/// A number; null if it is not finite, which JSON cannot represent.
nlohmann::json number(double value);
/// An object of such numbers.
nlohmann::json numbers(const std::map<std::string, double>& values);
/// Prints JSON to stdout.
void print_json(const nlohmann::json& json);

}  // namespace hardgrad::cli
