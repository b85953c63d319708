// The quantities that a run measures, evaluates, logs and records: one row a variable of a result, with all its facts. From here
// come the variables of files and their attributes, JSON, tables, Python's names. A new number of a measurement is a member, a row
// and its computation.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/named.hpp"
#include "experiments/support/precision.hpp"

namespace hardgrad::measurement {

inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Whether something was done: skipped if it does not fit.
enum class Status : char { ok, failed, skipped };
inline constexpr Named<Status> statuses[] = {{"ok", Status::ok}, {"failed", Status::failed}, {"skipped", Status::skipped}};

/// The measured quantities; NaN if unknown. Sums of squares run over all parameters unless stated otherwise.
struct Measurement {
  std::string estimator;                 ///< the spec as given
  std::string target = "expected_loss";  ///< name of the estimator's target
  bool known_unbiased = false;           ///< claimed with these settings (claims_unbiased)
  Status status = Status::ok;
  std::string reason;                   ///< why status is not ok
  double estimand_norm = not_a_number;  ///< |g*|, the gradient of that target
  std::string estimand = "enumerated";  ///< source of g*: enumerated | a quadrature and its accuracy | spec and
                                        ///< replicates of a long run | why it is missing
  /// Root of the summed squared standard errors of g*; for a quadrature its error; 0 if enumerated.
  double estimand_standard_error = 0;
  double variance = not_a_number;            ///< trace of the covariance, 1/(M-1); infinite if the formula gives that
  double squared_bias = not_a_number;        ///< |mean - g*|^2 - variance / M: unbiased, may be negative
  double relative_bias = not_a_number;       ///< sqrt(max(squared_bias, 0)) / |g*|
  double mse = not_a_number;                 ///< variance + squared_bias
  double snr = not_a_number;                 ///< |g*|^2 / variance
  double cosine = not_a_number;              ///< mean cosine of a replicate to g*
  double mean_cosine = not_a_number;         ///< cosine of the mean gradient to g*, if exact: 1 if only its length is biased
  double bias_p_value_plain = not_a_number;  ///< of "no bias", by the length of mean - g*: uniform in (0, 1) if there is none
  double bias_p_value = not_a_number;        ///< least along g* and random directions, Bonferroni-corrected
  double replicates = not_a_number;          ///< number drawn
  double effective_sample_size = not_a_number;  ///< ReplicateStatistics::effective_sample_size of the variance
  double tail_index = not_a_number;             ///< of the squared deviations, ReplicateStatistics::tail
  double unvisited_mass = not_a_number;         ///< probability of the choices that no replicate made, see paths.hpp
  double effective_ratio_share = not_a_number;  ///< off policy: Ratios::effective_share
  double largest_ratio = not_a_number;          ///< off policy: Ratios::largest
  /// By visiting every outcome, in addition to Method::sampled, if that takes no more visits than the sample takes examples.
  double exact_variance = not_a_number, exact_squared_bias = not_a_number, exact_cosine = not_a_number;
  std::string reliability_warning;         ///< why the replicates do not support these statistics; empty if they do
  double rows = not_a_number;              ///< model rows per gradient
  double attention_values = not_a_number;  ///< per gradient
  double missed_hints = not_a_number;      ///< Tape::missed_hints per gradient: work done twice, which changes no number
  double seconds = not_a_number;           ///< wall seconds per gradient
  double work_normalised_variance = not_a_number;  ///< variance x rows
  double outcomes = not_a_number;                  ///< number visited, if exact
  double attention_entropy = not_a_number;         ///< nats a choice, see choice_entropy.hpp; of the network, not the estimator
  std::map<std::string, double> entropy_by_site;   ///< the same for the choices of one site
  std::map<std::string, double> bias_against;      ///< squared bias against each known target, by name
  std::map<std::string, std::array<double, 2>> intervals;  ///< by name of the field above
  std::map<std::string, double> variance_by_group;         ///< by parameter group
  std::map<std::string, double> variance_by_site;          ///< at the logits: by site
  std::vector<double> mean;                                ///< [P] mean gradient, in the order of the model's parameters
  std::vector<double> variances;                           ///< [P] of each entry
  std::vector<double> covariance;                          ///< [P, P] if requested
};

/// True if every outcome was visited.
inline bool is_exact(const Measurement& m) { return std::isfinite(m.outcomes); }

/// One logged point of training: seconds (without measurements and evaluations), rows, attention values and CPU seconds of the
/// training thread so far. Other processes affect the wall time, not the CPU time.
struct LogPoint {
  int step;
  double loss, seconds, gradient_norm;
  double rows = not_a_number, attention_values = not_a_number, cpu_seconds = not_a_number;
};

enum class Better : char { neither, lower, higher };
/// The kinds of confidence intervals.
enum class Bounds : char {
  none,
  two_sided,
  above_zero,  ///< of a length: a value lost in the noise has 0 below and a one-sided bound above, others have two sides
};

/// Whether the replicates give it; an estimate is marked where they do not support it.
enum class OfSamples : char { no, yes, estimate };
/// Which measurements have it in the table of `hardgrad measure`.
enum class Shown : char { always, exact, sampled, beside_exact, off_policy };

struct Facts {
  const char* units = "1";
  Better better = Better::neither;
  Bounds interval = Bounds::none;
  const char* exact_twin = "";  ///< the quantity with the exact value of the same
  int digits = 0;               ///< significant ones in tables; 0: not decided here
  OfSamples sampled = OfSamples::no;
  const char* heading = "";  ///< in the table of `hardgrad measure`; empty: not shown
  Shown shown = Shown::always;
};

struct Quantity : Facts {
  std::string_view name;  ///< with a * for the names of a family
  const char* axis;       ///< besides run; empty: none
  const char* meaning;    ///< to which a name is added if it ends in a space
  double Measurement::*measured = nullptr;
  double LogPoint::*logged = nullptr;
  std::map<std::string, double> Measurement::*measured_by = nullptr;
  const char* label = "";  ///< the axis of measured_by
};

namespace rows {

constexpr Quantity measured(std::string_view name, double Measurement::*field, const char* meaning, Facts facts = {}) {
  facts.digits = 3;
  return {facts, name, "measurement_step", meaning, field};
}
constexpr Quantity measured_by(std::string_view name, std::map<std::string, double> Measurement::*field, const char* label,
                               const char* meaning, Facts facts = {}) {
  return {facts, name, "measurement_step", meaning, nullptr, nullptr, field, label};
}
constexpr Quantity logged(std::string_view name, double LogPoint::*field, const char* meaning, Facts facts = {}) {
  facts.digits = 3;
  return {facts, name, "step", meaning, nullptr, field};
}
constexpr Quantity number(std::string_view name, const char* axis, const char* meaning, Facts facts = {}) {
  return {facts, name, axis, meaning};
}
constexpr Quantity loss(std::string_view name) {
  return {{.better = Better::lower, .digits = 3}, name, "evaluation_step", "loss per example on the split of the evaluation: "};
}
/// Texts and flags have no units.
constexpr Quantity words(std::string_view name, const char* axis, const char* meaning) {
  return {{.units = ""}, name, axis, meaning};
}

using M = Measurement;
inline constexpr auto lower = Better::lower, higher = Better::higher;
inline constexpr auto yes = OfSamples::yes, estimate = OfSamples::estimate;

inline constexpr Quantity all[] = {
    // Measurements, in the order of the table of `hardgrad measure`.
    measured("estimand_norm", &M::estimand_norm, "norm of the exact gradient of the estimator's own target",
             {.sampled = yes, .heading = "|GRADIENT|"}),
    measured("estimand_standard_error", &M::estimand_standard_error,
             "root of the summed squared standard errors of the exact gradient; of a quadrature its error; 0 if enumerated",
             {.sampled = yes}),
    measured("squared_bias", &M::squared_bias, "squared bias against the estimator's own target; unbiased, may be negative",
             {.better = lower,
              .interval = Bounds::above_zero,
              .exact_twin = "exact_squared_bias",
              .sampled = estimate,
              .heading = "BIAS^2"}),
    measured("relative_bias", &M::relative_bias, "bias over the norm of the exact gradient",
             {.better = lower, .interval = Bounds::above_zero, .sampled = estimate, .heading = "REL.BIAS"}),
    measured("exact_squared_bias", &M::exact_squared_bias,
             "exact squared bias over all outcomes, for comparison with the sampled one",
             {.better = lower, .heading = "EXACT", .shown = Shown::beside_exact}),
    measured("variance", &M::variance, "trace of the covariance of the gradient",
             {.better = lower,
              .interval = Bounds::two_sided,
              .exact_twin = "exact_variance",
              .sampled = estimate,
              .heading = "VARIANCE"}),
    measured("exact_variance", &M::exact_variance, "exact variance over all outcomes, for comparison with the sampled one",
             {.better = lower, .heading = "EXACT", .shown = Shown::beside_exact}),
    measured("snr", &M::snr, "squared norm of the exact gradient over variance",
             {.better = higher, .interval = Bounds::two_sided, .sampled = estimate, .heading = "SNR"}),
    measured("cosine", &M::cosine, "mean cosine of one estimate to the exact gradient",
             {.better = higher,
              .interval = Bounds::two_sided,
              .exact_twin = "exact_cosine",
              .sampled = estimate,
              .heading = "COSINE"}),
    measured("exact_cosine", &M::exact_cosine, "exact mean cosine over all outcomes, for comparison with the sampled one",
             {.better = higher}),
    measured("mean_cosine", &M::mean_cosine, "cosine of the exact mean gradient to the exact gradient", {.better = higher}),
    measured("mse", &M::mse, "variance plus squared bias", {.better = lower, .sampled = estimate}),
    measured("outcomes", &M::outcomes, "outcomes visited by an exact measurement",
             {.heading = "OUTCOMES", .shown = Shown::exact}),
    measured("bias_p_value_plain", &M::bias_p_value_plain,
             "p-value of the hypothesis of no bias, by the length of the mean deviation",
             {.sampled = estimate, .heading = "P(UNBIASED)", .shown = Shown::sampled}),
    measured("bias_p_value", &M::bias_p_value,
             "smallest p-value of no bias along the gradient and random directions, Bonferroni-corrected",
             {.sampled = estimate, .heading = "P(CORRECTED)", .shown = Shown::sampled}),
    measured("effective_ratio_share", &M::effective_ratio_share,
             "off policy: effective sample size over the number of samples, (E R)^2 / E R^2 of their ratios R",
             {.heading = "RATIO SHARE", .shown = Shown::off_policy}),
    measured("largest_ratio", &M::largest_ratio,
             "off policy: the largest ratio of a sample's probabilities under both policies",
             {.heading = "MAX RATIO", .shown = Shown::off_policy}),
    measured("rows", &M::rows, "model rows per gradient", {.better = lower, .heading = "ROWS"}),
    measured("seconds", &M::seconds, "wall time per gradient", {.units = "s", .better = lower, .heading = "MS"}),
    measured("work_normalised_variance", &M::work_normalised_variance, "variance times rows",
             {.better = lower, .sampled = estimate, .heading = "VAR x ROWS"}),
    measured("replicates", &M::replicates, "gradients drawn", {.sampled = yes}),
    measured("effective_sample_size", &M::effective_sample_size,
             "number of equally weighted replicates that would estimate the variance as precisely", {.sampled = yes}),
    measured("tail_index", &M::tail_index, "Hill's tail index of the replicates' squared deviations", {.sampled = yes}),
    measured("unvisited_mass", &M::unvisited_mass, "probability of the choices that no replicate made"),
    measured("attention_values", &M::attention_values, "attention values computed per gradient", {.better = lower}),
    measured("missed_hints", &M::missed_hints,
             "output layers per gradient that were recomputed because their hinted loss weights did not match",
             {.better = lower}),
    measured("attention_entropy", &M::attention_entropy, "mean entropy of one choice of the network", {.units = "nat"}),
    measured_by("variance_by_group", &M::variance_by_group, "parameter_group",
                "trace of the covariance within a group of parameters", {.better = lower}),
    measured_by("attention_entropy_by_site", &M::entropy_by_site, "site", "mean entropy of one choice at a site of the network",
                {.units = "nat"}),
    measured_by("bias_against", &M::bias_against, "target", "squared bias against each available target", {.better = lower}),
    number("*_interval", "measurement_step", "confidence interval of "),
    words("measurement_status", "measurement_step", "whether bias and variance were measured"),
    words("measurement_reason", "measurement_step", "why the measurement was skipped"),
    words("measurement_unsupported", "measurement_step", "why the replicates do not support their intervals; empty if they do"),
    words("measured_estimator", "measurement_step", "estimator measured, as given"),
    words("own_target", "measurement_step", "target the estimator aims at"),
    words("known_unbiased", "measurement_step",
          "whether the estimator is unbiased by its derivation, as its tests confirm: yes or no"),
    // Of `compare` on a network of the user's own.
    number("time_normalised_variance", "measurement_step", "variance times seconds", {.better = lower, .digits = 3}),
    number(
        "unseen_variance", "measurement_step",
        "most that draws in none of the replicates may add to the variance, in 95% of comparisons, if they are no larger than "
        "those seen; NaN if none differs",
        {.better = lower, .digits = 3}),
    number("not_finite", "measurement_step", "estimates left out since they are not finite", {.better = lower}),
    number("warmup", "measurement_step", "steps in which the estimator learned before"),
    number(
        "rank", "measurement_step",
        "1 plus the number of estimators without bias whose variance times cost is less beyond noise; NaN if biased or failed",
        {.better = lower}),
    number("squared_bias_by_group", "measurement_step", "squared bias within a group of parameters", {.better = lower}),
    number("relative_bias_by_group", "measurement_step", "relative bias within a group of parameters", {.better = lower}),
    number("bias_p_value_plain_by_group", "measurement_step", "p-value of no bias within a group of parameters"),
    words("estimand", "measurement_step", "source of the true gradient"),
    words("measurement_note", "measurement_step", "remarks"),
    // Training.
    logged("train_loss", &LogPoint::loss, "training loss, mean since the last logged step", {.better = lower}),
    logged("train_seconds", &LogPoint::seconds, "wall time of training up to the step", {.units = "s", .better = lower}),
    logged("gradient_norm", &LogPoint::gradient_norm, "norm of the gradient estimate"),
    logged("train_rows", &LogPoint::rows, "model rows of the training gradients up to the step", {.better = lower}),
    logged("train_attention_values", &LogPoint::attention_values, "attention values of the training gradients up to the step",
           {.better = lower}),
    logged("train_cpu_seconds", &LogPoint::cpu_seconds, "processor time of the training thread up to the step",
           {.units = "s", .better = lower}),
    // Evaluations.
    // The losses of an evaluation, per example, in the order in which they rank.
    loss("heldout_expected_loss"),
    loss("heldout_marginal_likelihood"),
    loss("heldout_soft"),
    loss("heldout_elbo"),
    loss("heldout_sampled_elbo"),
    loss("heldout_sampled_loss"),
    loss("heldout_sampled_bound"),
    loss("heldout_greedy_loss"),
    number("metric_*", "evaluation_step", "metric on the split of the evaluation: ", {.digits = 3}),
    words("evaluated", "evaluation_step", "whether the run was evaluated at the step"),
    // Runs.
    words("task_settings", "", "every parameter of the task, defaults included, as JSON"),
    words("model_settings", "", "every parameter of the model, defaults included, as JSON"),
    words("estimator_settings", "", "every parameter of the estimator, defaults included, as JSON"),
    words("target_settings", "", "every parameter of the estimator's target, defaults included, as JSON"),
    words("data_hash", "", "hash of the contents of the task's files; empty for generated data"),
    words("run_settings", "", "every setting of training and measurement, defaults included, as JSON"),
    words("cell_hash", "", "hash of the cell"),
    words("status", "", "how the run ended"),
    words("reason", "", "why the run failed or was skipped"),
    words("log", "", "printed output of the run"),
    words("ended_by", "", "what ended the training: steps, rows, attention_values, cpu_seconds, target_loss, patience"),
    words("trained_target", "", "target of the estimator that trains"),
    words("metrics_better", "", "whether higher or lower values of each metric of the task are better, as JSON"),
    words("checkpoint", "", "file of the final parameters, relative to the cells' folder"),
    number("seed", "", "root seed; from 2^63 on it wraps to negative numbers: seed_hex is exact", {.units = ""}),
    words("seed_hex", "", "root seed, hexadecimal"),
    number("total_seconds", "", "wall time of the training", {.units = "s", .better = lower}),
    number("total_rows", "", "model rows of all training gradients", {.better = lower}),
    number("total_attention_values", "", "attention values of all training gradients", {.better = lower}),
    number("cost_*", "", "cost: ", {.better = lower}),
    words("configuration", "", "configuration, TOML"),
    words("provenance_*", "", "of the run: "),
    // The search for settings: of reported runs, then of its trials.
    words("tuning_edge", "", "settings at the end of the tried range"),
    number("tuning_setting", "", "number of its setting among those tried, from 0"),
    number("tuning_settings", "", "settings tried"),
    number("tuning_failed", "", "trials that failed"),
    words("tuning_estimator", "", "the estimator as the sweep names it"),
    number("tuning_round", "", "round of the search, from 1"),
    number("tuning_score", "", "value of the tuning criterion"),
    words("tuning_quantity", "", "tuning criterion of the score"),
    words("tuning_kept", "", "whether its setting continued to the next round, or was chosen"),
};

}  // namespace rows

/// All rows.
constexpr const auto& quantities() { return rows::all; }
/// The row of a variable's name, or of its family; null if there is none.
constexpr const Quantity* find_quantity(std::string_view name) {
  const auto matches = [name](std::string_view row) {
    return row.ends_with('*') ? name.starts_with(row.substr(0, row.size() - 1)) : name.ends_with(row.substr(1));
  };
  for (const auto& row : quantities())
    if (row.name == name) return &row;
  for (const auto& row : quantities())
    if (row.name.find('*') != row.name.npos && matches(row.name)) return &row;
  return nullptr;
}

/// Calls f(attribute, value) for each fact of a quantity, as attributes have it.
template <class F>
void each_fact(const Quantity& row, const F& f) {
  if (*row.units) f("units", row.units);
  f("long_name", row.meaning);
  if (row.better != Better::neither) f("better", row.better == Better::lower ? "lower" : "higher");
  if (row.interval != Bounds::none) f("interval", row.interval == Bounds::two_sided ? "two_sided" : "above_zero");
  if (*row.exact_twin) f("exact_twin", row.exact_twin);
  if (row.digits) f("digits", std::int64_t{row.digits});
}

/// The relative error of sums of gradients and of quadratures in a precision: several times the observed one.
constexpr double rounding_share(double epsilon) { return 64 * epsilon; }
/// A squared bias that rounding explains even where the gradient is zero.
inline constexpr double least_squared_bias = 1e-30;

/// f(attribute, value) for all that follows from the precision of a result.
template <class F>
void each_fact_of(Precision precision, const F& f) {
  f("precision", name_of(precision, precisions));
  f("rounding", rounding_share(epsilon_of(precision)));
  f("least_squared_bias", least_squared_bias);
}

}  // namespace hardgrad::measurement
