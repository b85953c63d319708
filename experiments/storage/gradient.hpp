// A file with everything needed to recompute one gradient elsewhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/models/batch.hpp"
#include "experiments/storage/archive.hpp"

namespace hardgrad::storage {

template <class T>
struct NamedArray {
  std::string name;  ///< dotted
  Array<T> value;
};

/// Rows are the final rows; choices, losses and logits of earlier rows are repeated for all their continuations. If a query
/// asks for several choices, its columns are an axis after the rows: [T, R, D], [T, R, D, S].
template <class T>
struct GradientDump {
  std::vector<NamedArray<T>> parameters, gradient;
  std::vector<NamedArray<double>> constants;  ///< Model::constants
  std::vector<NamedArray<double>> dropout;    ///< Model::dropout_factors
  Batch batch;
  /// The words of the batch's integer fields that encode words, in the field's shape; empty for padding.
  std::map<std::string, Array<std::string>> words;
  Array<int> choices = zeros<int>({0});  ///< [T, R] option; -1 where the row had no choice. Empty if relaxed or a subset
  Array<T> weights = zeros<T>({0});   ///< [T, R, S] relaxed weights, or 1 at a subset's options. Empty if one option is chosen
  Array<T> log_prob = zeros<T>({0});  ///< [T, R] log-probability of the choice under the prior
  Array<T> loss = zeros<T>({0});      ///< [T, R]; another first length than the choices' is allowed
  Array<T> logits = zeros<T>({0});    ///< [T, R, S] of the prior
  Array<T> posterior_log_prob = zeros<T>({0}),
           posterior_logits = zeros<T>({0});  ///< the same of the posterior, if choices are drawn from it
  /// For continuous choices, [T, R, D] each: `value`, and by name the parameters and log-densities of their distribution.
  std::vector<NamedArray<T>> numbers;
  std::vector<std::string> sites;      ///< [T] the site of the query
  std::vector<int> row_example;        ///< [R]
  std::string task, model, estimator;  ///< specs
  std::string model_settings = "{}";   ///< every parameter of the model, defaults included, as JSON
  std::string dimensions = "{}";  ///< the task's settings for the model, as JSON: vocabulary sizes, id of the sentence start
  std::uint64_t seed = 0;
  double surrogate = 0;
};

/// /parameters/<name>, /gradient/<name>, /constants/<name>, /dropout/<name>, /batch/<field>, /batch/<field>_text, /choices or
/// /weights, /log_prob, /loss, /logits, /value and the others in `numbers`, /site, /row_example; empty arrays are omitted.
/// Atomic; UsageError if it cannot be written.
template <class T>
void write_gradient(const std::string& path, const GradientDump<T>& dump);

/// The arrays as a dataset; their axes are named by position and length: rows_64, columns_32, axis2_7.
template <class T>
Dataset named_dataset(const std::vector<NamedArray<T>>& arrays);

}  // namespace hardgrad::storage
