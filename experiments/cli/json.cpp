#include "experiments/cli/json.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

#include "experiments/cli/output.hpp"

namespace hardgrad::cli {

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

nlohmann::json numbers(const std::map<std::string, double>& values) {
  auto object = nlohmann::json::object();
  for (const auto& [name, value] : values) object[name] = number(value);
  return object;
}

void print_json(const nlohmann::json& json) { put("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)); }

}  // namespace hardgrad::cli
