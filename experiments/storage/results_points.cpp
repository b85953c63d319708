// Columns over steps: logged, evaluated and measured values.
#include <functional>
#include <map>
#include <set>

#include "experiments/storage/column_builder.hpp"

namespace hardgrad::storage {
namespace {

// "higher" or "lower"; null if no record has it, or tasks differ.
const char* better_of(const Labels& labels, const std::string& metric) {
  const auto it = labels.higher_is_better.find(metric);
  if (it == labels.higher_is_better.end() || it->second.size() != 1) return nullptr;
  return *it->second.begin() ? "higher" : "lower";
}

}  // namespace

void add_training(ColumnBuilder& b, const Records& records) {
  const std::size_t n = b.length("step");
  const auto numbers = [&](const char* name, double training::LogPoint::*field, const char* units, const char* long_name) {
    auto* out = b.column(name, {"step"}, measurement::not_a_number, described(units, long_name));
    if (!out) return;
    for (std::size_t r = 0; r < records.size(); ++r)
      for (const auto& point : records[r].result.log) (*out)[r * n + b.place<std::int64_t>("step", point.step)] = point.*field;
  };
  numbers("train_loss", &training::LogPoint::loss, "1", "training loss, mean since the last logged step");
  numbers("train_seconds", &training::LogPoint::seconds, "s", "wall time of training up to the step");
  numbers("gradient_norm", &training::LogPoint::gradient_norm, "1", "norm of the gradient estimate");
  numbers("train_rows", &training::LogPoint::rows, "1", "model rows of the training gradients up to the step");
  numbers("train_attention_values", &training::LogPoint::attention_values, "1",
          "attention values of the training gradients up to the step");
  numbers("train_cpu_seconds", &training::LogPoint::cpu_seconds, "s", "processor time of the training thread up to the step");
}

void add_evaluations(ColumnBuilder& b, const Records& records, const Labels& labels) {
  const std::size_t n = b.length("evaluation_step");
  const auto family = [&](const std::string& prefix, const std::string& words, const std::set<std::string>& names,
                          std::map<std::string, double> training::EvaluationPoint::*field) {
    for (const auto& name : names) {
      auto attributes = keyed(described("1", words + name), prefix, name);
      if (const auto better = prefix == "metric" ? better_of(labels, name) : "lower") attributes.emplace_back("better", better);
      auto* out =
          b.column(prefix + "_" + safe_name(name), {"evaluation_step"}, measurement::not_a_number, std::move(attributes));
      for (std::size_t r = 0; r < records.size(); ++r)
        for (const auto& point : records[r].result.evaluations)
          if (auto it = (point.*field).find(name); it != (point.*field).end())
            (*out)[r * n + b.place<std::int64_t>("evaluation_step", point.step)] = it->second;
    }
  };
  family("heldout", "loss per example on the split of the evaluation: ", labels.losses, &training::EvaluationPoint::losses);
  family("metric", "metric on the split of the evaluation: ", labels.metrics, &training::EvaluationPoint::metrics);
  if (auto* out = b.column("evaluated", {"evaluation_step"}, std::uint8_t{},
                           flags("whether the run was evaluated at the step", {"no", "yes"})))
    for (std::size_t r = 0; r < records.size(); ++r)
      for (const auto& point : records[r].result.evaluations)
        (*out)[r * n + b.place<std::int64_t>("evaluation_step", point.step)] = 1;
}

void add_measurements(ColumnBuilder& b, const Records& records, const Labels& labels) {
  const std::size_t n = b.length("measurement_step");
  if (n == 0) return;
  // Calls f(flat index, measurement) for every measurement.
  const auto each = [&](const std::function<void(std::size_t, const measurement::Measurement&)>& f) {
    for (std::size_t r = 0; r < records.size(); ++r)
      for (const auto& point : records[r].result.measurements)
        f(r * n + b.place<std::int64_t>("measurement_step", point.step), point.measurement);
  };
  const auto strings = [&](const char* name, const char* words, auto&& get) {
    auto& out = *b.column(name, {"measurement_step"}, std::string(), {{"long_name", words}});
    each([&](std::size_t i, const measurement::Measurement& m) { out[i] = get(m); });
  };
  auto& status = *b.column("measurement_status", {"measurement_step"}, std::uint8_t{2},
                           flags("whether bias and variance were measured", {"ok", "skipped", "absent"}));
  each([&](std::size_t i, const measurement::Measurement& m) { status[i] = m.status == "ok" ? 0 : 1; });
  strings("measurement_reason", "why the measurement was skipped", [](auto& m) { return m.reason; });
  strings("measurement_unsupported", "why the replicates do not support their intervals; empty if they do",
          [](auto& m) { return m.why_unreliable; });
  strings("measured_estimator", "estimator measured, as given", [](auto& m) { return m.estimator; });
  strings("own_target", "target the estimator aims at", [](auto& m) { return m.target; });
  strings("known_unbiased", "whether the estimator is unbiased by its derivation, as its tests confirm: yes or no",
          [](auto& m) { return m.known_unbiased; });
  for (const auto& field : measurement_fields()) {
    auto& out = *b.column(field.name, {"measurement_step"}, measurement::not_a_number, described(field.units, field.long_name));
    each([&](std::size_t i, const measurement::Measurement& m) { out[i] = m.*field.value; });
  }
  for (const auto& name : labels.intervals) {
    auto& out = *b.column(safe_name(name) + "_interval", {"measurement_step", "bound"}, measurement::not_a_number,
                          keyed(described("1", "confidence interval of " + name), "interval", name));
    each([&](std::size_t i, const measurement::Measurement& m) {
      if (auto it = m.intervals.find(name); it != m.intervals.end())
        std::copy(it->second.begin(), it->second.end(), out.begin() + static_cast<std::ptrdiff_t>(2 * i));
    });
  }
  const auto family = [&](const char* variable, const char* axis, const char* words,
                          std::map<std::string, double> measurement::Measurement::*field, const char* units = "1") {
    auto* out = b.column(variable, {"measurement_step", axis}, measurement::not_a_number, described(units, words));
    if (!out) return;
    each([&](std::size_t i, const measurement::Measurement& m) {
      for (const auto& [name, value] : m.*field) (*out)[i * b.length(axis) + b.place<std::string>(axis, name)] = value;
    });
  };
  family("variance_by_group", "parameter_group", "trace of the covariance within a group of parameters",
         &measurement::Measurement::variance_by_group);
  family("attention_entropy_by_site", "site", "mean entropy of one choice at a site of the network",
         &measurement::Measurement::entropy_by_site, "nat");
  family("bias_against", "target", "squared bias against each available target", &measurement::Measurement::bias_against);
}

}  // namespace hardgrad::storage
