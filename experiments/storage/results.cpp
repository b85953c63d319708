// The columns of results: which numbers of a measurement, and over which axes.
#include "experiments/storage/results.hpp"

#include "experiments/storage/column_builder.hpp"

namespace hardgrad::storage {

const std::vector<MeasurementField>& measurement_fields() {
  using M = measurement::Measurement;
  static const std::vector<MeasurementField> fields = {
      {"estimand_norm", &M::estimand_norm, "1", "norm of the exact gradient of the estimator's own target"},
      {"variance", &M::variance, "1", "trace of the covariance of the gradient"},
      {"squared_bias", &M::squared_bias, "1", "squared bias against the estimator's own target; unbiased, may be negative"},
      {"relative_bias", &M::relative_bias, "1", "bias over the norm of the exact gradient"},
      {"mse", &M::mse, "1", "variance plus squared bias"},
      {"snr", &M::snr, "1", "squared norm of the exact gradient over variance"},
      {"cosine", &M::cosine, "1", "mean cosine of one estimate to the exact gradient"},
      {"mean_cosine", &M::mean_cosine, "1", "cosine of the exact mean gradient to the exact gradient"},
      {"bias_p_value_plain", &M::bias_p_value_plain, "1",
       "p-value of the hypothesis of no bias, by the length of the mean deviation"},
      {"bias_p_value", &M::bias_p_value, "1",
       "smallest p-value of no bias along the gradient and random directions, Bonferroni-corrected"},
      {"replicates", &M::replicates, "1", "gradients drawn"},
      {"effective_sample_size", &M::effective_sample_size, "1",
       "number of equally weighted replicates that would estimate the variance as precisely"},
      {"tail_index", &M::tail_index, "1", "Hill's tail index of the replicates' squared deviations"},
      {"unvisited_mass", &M::unvisited_mass, "1", "probability of the choices that no replicate made"},
      {"effective_ratio_share", &M::effective_ratio_share, "1",
       "off policy: effective sample size over the number of samples, (E R)^2 / E R^2 of their ratios R"},
      {"largest_ratio", &M::largest_ratio, "1",
       "off policy: the largest ratio of a sample's probabilities under both policies"},
      {"exact_variance", &M::exact_variance, "1", "exact variance over all outcomes, for comparison with the sampled one"},
      {"exact_squared_bias", &M::exact_squared_bias, "1",
       "exact squared bias over all outcomes, for comparison with the sampled one"},
      {"exact_cosine", &M::exact_cosine, "1", "exact mean cosine over all outcomes, for comparison with the sampled one"},
      {"rows", &M::rows, "1", "model rows per gradient"},
      {"attention_values", &M::attention_values, "1", "attention values computed per gradient"},
      {"missed_hints", &M::missed_hints, "1",
       "output layers per gradient that were recomputed because their hinted loss weights did not match"},
      {"seconds", &M::seconds, "s", "wall time per gradient"},
      {"work_normalised_variance", &M::work_normalised_variance, "1", "variance times rows"},
      {"outcomes", &M::outcomes, "1", "outcomes visited by an exact measurement"},
      {"attention_entropy", &M::attention_entropy, "nat", "mean entropy of one choice of the network"}};
  return fields;
}

void Labels::add(const CellRecord& record) {
  const auto names = [](const auto& map, std::set<std::string>& of) {
    for (const auto& [name, value] : map) of.insert(name);
  };
  names(record.axes, axes);
  names(record.costs, costs);
  for (const auto& point : record.result.log) steps.insert(point.step);
  for (const auto& point : record.result.evaluations) {
    evaluations.insert(point.step);
    names(point.losses, losses);
    names(point.metrics, metrics);
    for (const auto& [name, higher] : record.result.higher_is_better)
      if (point.metrics.contains(name)) higher_is_better[name].insert(higher);
  }
  for (const auto& point : record.result.measurements) {
    measurements.insert(point.step);
    names(point.measurement.variance_by_group, groups);
    names(point.measurement.entropy_by_site, sites);
    names(point.measurement.bias_against, targets);
    names(point.measurement.intervals, intervals);
  }
}

namespace {

Dataset filled(ColumnBuilder b, const Records& records, const Labels& labels) {
  b.axis("step", labels.steps, "training step");
  b.axis("evaluation_step", labels.evaluations, "training steps done before the evaluation");
  b.axis("measurement_step", labels.measurements, "training steps done before the measurement");
  b.axis("parameter_group", labels.groups, "group of parameters");
  b.axis("site", labels.sites, "site of the model's choices");
  b.axis("target", labels.targets, "objective whose gradient is the truth");
  if (!labels.intervals.empty()) b.axis("bound", std::vector<std::string>{"low", "high"}, "end of an interval");
  add_runs(b, records, labels);
  add_training(b, records);
  add_evaluations(b, records, labels);
  add_measurements(b, records, labels);
  return b.take();
}

}  // namespace

Dataset columns(const std::vector<CellRecord>& records, const Labels& labels, std::size_t first) {
  return filled(ColumnBuilder(records.size(), first), records, labels);
}

Dataset columns(const CellRecord& record) {
  Labels labels;
  labels.add(record);
  return filled(ColumnBuilder(), {record}, labels);
}

}  // namespace hardgrad::storage
