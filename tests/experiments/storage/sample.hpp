// Synthetic results that resemble real ones: tasks x estimators x seeds, including failed and skipped cells.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "experiments/storage/cell.hpp"

namespace hardgrad::testing {

/// Deterministic noise in (-1, 1).
inline double wobble(unsigned& state) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) * (2.0 / 16777216.0) - 1;
}

inline measurement::Measurement sample_measurement(const std::string& estimator, double scale, double variance, double bias,
                                                   unsigned& noise, const std::string& target) {
  measurement::Measurement m;
  m.estimator = estimator;
  m.target = target;
  const double spread = 1 + 0.2 * wobble(noise);
  m.estimand_norm = scale;
  m.variance = scale * scale * variance * spread;
  m.squared_bias = scale * scale * (bias + 0.03 * variance * wobble(noise));
  m.relative_bias = std::sqrt(std::max(m.squared_bias, 0.0)) / scale;
  m.mse = m.variance + m.squared_bias;
  m.snr = m.variance > 0 ? scale * scale / m.variance : measurement::not_a_number;
  m.cosine = 1 / std::sqrt(1 + variance);
  m.bias_p_value = bias > 0 ? 1e-6 : 0.4;
  m.rows = 4;
  m.attention_values = 40;
  m.seconds = 1e-3;
  m.work_normalised_variance = m.variance * m.rows;
  m.attention_entropy = 0.5 * scale;
  const double half = scale * scale * 0.05 * variance;
  m.intervals = {{"variance", {m.variance * 0.85, m.variance * 1.2}},
                 {"squared_bias", {m.squared_bias - half, m.squared_bias + half}}};
  m.variance_by_group = {{"encoder", m.variance * 0.3}, {"decoder", m.variance * 0.7}};
  m.bias_against = {{"expected_loss", m.squared_bias}, {"marginal_likelihood", m.squared_bias + 0.1}};
  m.mean = {1, -2, 0.5};
  m.variances = {0.1, 0.2, 0.3};
  return m;
}

inline storage::CellRecord sample_cell(const std::string& task, const std::string& model, const std::string& estimator,
                                       int seed, double variance, double bias) {
  unsigned noise = static_cast<unsigned>(seed) * 7919u + static_cast<unsigned>(estimator.size() * 31 + task.size());
  storage::CellRecord record;
  record.axes = {{"task", task},
                 {"model", model},
                 {"estimator", estimator},
                 {"seed", std::to_string(seed)},
                 {"optimizer.learning_rate", "0.003"}};
  record.plan_hash = "0123456789abcdef";
  record.cell_hash = task.substr(0, 2) + "-" + estimator + "-" + std::to_string(seed);
  record.configuration = "[grid]\ntask = [\"translation\", \"qa\"]  # gr\xC3\xBC\xC3\x9F\n";
  record.precision = Precision::float32;
  record.log = "trained";
  record.run_settings = R"({"train.learning_rate":0.003,"train.steps":)" + std::to_string(300 + seed) + "}";
  record.costs = {{"cpu_seconds", 1.5}};
  record.checkpoint = record.cell_hash + ".checkpoint.h5";
  record.provenance = {
      {"git_commit", "abc"}, {"git_dirty", "false"},      {"compiler", "GNU 12.2.0"},      {"flags", "-O3"},
      {"blas", "OpenBLAS"},  {"blas_kernel", "SkylakeX"}, {"instruction_set", "avx512bw"}, {"cpu", "a processor"},
      {"threads", "2"}};
  auto& result = record.result;
  result.metrics["accuracy"] = {.unit = "1", .higher_is_better = true, .share = true};
  const double speed = 1 / (40 + 60 * variance / (1 + variance)), floor = 0.8 + 3 * bias;
  for (int step = 0; step <= 300; step += 10)
    result.log.push_back({step, floor + 2.5 * std::exp(-step * speed) + 0.05 * wobble(noise), 0.01 * step,
                          1 + std::exp(-step * speed), 128.0 * step, 1280.0 * step, 0.008 * step});
  for (int step = 0; step <= 300; step += 100) {
    training::EvaluationPoint point{step, {}, {}};
    point.losses["expected_loss"] = floor + 0.1 + 2.5 * std::exp(-step * speed);
    if (estimator != "soft") point.losses["marginal_likelihood"] = floor + 2.5 * std::exp(-step * speed);
    point.metrics["accuracy"] = 1 - 0.9 * std::exp(-step * speed) - 0.02 * (1 + wobble(noise));
    result.evaluations.push_back(point);
  }
  const auto* target = estimator == "soft" ? "soft" : "expected_loss";
  for (int at = 0; at < 3; ++at)
    result.measurements.push_back(
        {150 * at, sample_measurement(estimator, 1.5 / (2 + at), variance * (1 + 0.5 * at), bias, noise, target)});
  result.seconds = 3;
  result.rows = 38400;
  result.attention_values = 384000;
  return record;
}

inline std::vector<storage::CellRecord> sample_sweep(int seeds = 3) {
  struct Kind {
    const char* estimator;
    double variance, bias;
  };
  const Kind kinds[] = {{"exact", 0, 0},
                        {"reinforce[reward_to_go=true]", 9, 0},
                        {"moving_baseline", 3, 0},
                        {"rloo[samples=4]", 0.6, 0},
                        {"nvil", 2, 0},
                        {"soft", 0, 0.2}};
  const std::pair<const char*, const char*> tasks[] = {{"bits", "bits"},
                                                       {"translation[length=6]", "translator[feed=sampled]"},
                                                       {"qa", "memory_reader[hops=3]"},
                                                       {"glimpse", "glimpse_reader"}};
  std::vector<storage::CellRecord> records;
  for (auto [task, model] : tasks)
    for (const auto& kind : kinds)
      for (int seed = 1; seed <= seeds; ++seed) {
        records.push_back(sample_cell(task, model, kind.estimator, seed, kind.variance, kind.bias));
        auto& last = records.back();
        const bool soft_bits = std::string(task) == "bits" && std::string(kind.estimator) == "soft";
        const bool failed = std::string(task) == "qa" && std::string(kind.estimator) == "nvil" && seed == 2;
        if (soft_bits || failed) {
          last.result = {};
          last.status = failed ? storage::CellStatus::failed : storage::CellStatus::skipped;
          last.reason = failed ? "the gradient is not finite at step 12" : "soft: bits has no relaxed choices";
        }
        if (std::string(task) == "glimpse" && std::string(kind.estimator) == "exact")
          for (auto& point : last.result.measurements) {
            measurement::Measurement skipped;
            skipped.estimator = "exact";
            skipped.status = measurement::Status::skipped;
            skipped.reason = "2.6e6 leaves are more than the cap of 1e6";
            point.measurement = skipped;
          }
      }
  return records;
}

}  // namespace hardgrad::testing
