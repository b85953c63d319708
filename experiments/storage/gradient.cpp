// A gradient's file: arrays with named axes.
#include "experiments/storage/gradient.hpp"

#include "core/support/error.hpp"
#include "experiments/storage/dataset.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/support/precision.hpp"

namespace hardgrad::storage {
namespace {

// Adds an array along the given axes and declares new ones. Empty arrays are omitted.
template <class V>
void add(Dataset& data, const std::string& name, const Array<V>& array, std::vector<std::string> axes, const std::string& units,
         const std::string& long_name) {
  if (array.size() == 0) return;
  if (axes.size() != array.dimension()) throw Bug("gradient file: " + name + " is of another rank than its axes");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    auto* known = data.axis(axes[i]);
    if (!known)
      data.axes.push_back({axes[i], count_up(array.shape()[i])});
    else if (known->size() != array.shape()[i])
      throw Bug("gradient file: " + name + " has " + std::to_string(array.shape()[i]) + " along " + axes[i] + ", others have " +
                std::to_string(known->size()));
  }
  using Kept = std::conditional_t<std::is_same_v<V, int>, std::int32_t, V>;
  data.variables.push_back({name, std::move(axes), std::vector<Kept>(array.begin(), array.end()), described(units, long_name)});
}

// "rows_64", "columns_32", "axis2_7": axes of the same position and length share a name, so that few scales are needed.
std::vector<std::string> axes_by_length(const std::vector<std::size_t>& shape) {
  std::vector<std::string> axes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    axes.push_back((i == 0 ? "rows_" : i == 1 ? "columns_" : "axis" + std::to_string(i) + "_") + std::to_string(shape[i]));
  return axes;
}

// An array with one row per example.
template <class V>
void add_by_example(Dataset& data, const std::string& name, const Array<V>& array, const std::string& long_name) {
  auto axes = axes_by_length(array.shape());
  if (!axes.empty()) axes[0] = "example";
  add(data, name, array, axes, "1", long_name);
}

template <class V>
void add_field(Dataset& data, const std::string& name, const Array<V>& array) {
  add_by_example(data, name, array, "field " + name + " of the batch");
}

// Moves a group's axes to the root, so that the group holds only the named arrays.
void lift_axes(Dataset& group, Dataset& root) {
  for (auto& axis : group.axes) {
    if (!root.axis(axis.name)) root.axes.push_back(axis);
    axis.inherited = true;
  }
}

}  // namespace

template <class T>
Dataset named_dataset(const std::vector<NamedArray<T>>& arrays) {
  Dataset data;
  for (const auto& [name, value] : arrays) add(data, name, value, axes_by_length(value.shape()), "1", name);
  return data;
}

template <class T>
void write_gradient(const std::string& path, const GradientDump<T>& dump) {
  Archive archive{.kind = "gradient", .note = "gradient"};
  Dataset root, batch;
  root.attributes = {
      {"task", dump.task},
      {"model", dump.model},
      {"model_settings", dump.model_settings},
      {"dimensions", dump.dimensions},
      {"averages",
       "surrogate and gradient: the sum over an example's steps, its mean over the example's rows of an estimator "
       "that samples independently (others: see the estimator's file), and the mean of that over the batch"},
      {"estimator", dump.estimator},
      {"seed", static_cast<std::int64_t>(dump.seed)},
      {"seed_hex", hex_seed(dump.seed)},
      {"precision", name_of(precision_of<T>, precisions)},
      {"surrogate", dump.surrogate}};
  add_provenance(root.attributes, provenance());
  const auto steps = dump.choices.size()    ? extent(dump.choices, 0)
                     : dump.logits.size()   ? extent(dump.logits, 0)
                     : dump.numbers.empty() ? 0
                                            : extent(dump.numbers[0].value, 0);
  const bool aligned = steps == 0 || extent(dump.loss, 0) == steps;
  const bool columns = dump.logits.dimension() == 4;  // a query asks for several choices
  const auto of_choices = columns ? std::vector<std::string>{"step", "row", "column"} : std::vector<std::string>{"step", "row"};
  auto of_options = of_choices;
  of_options.emplace_back("option");
  add(root, "choices", dump.choices, of_choices, "1", "option chosen; -1 where the row had no choice");
  add(root, "weights", dump.weights, of_options, "1", "relaxed weights of the options");
  add(root, "log_prob", dump.log_prob, of_choices, "nat", "log-probability of the choice");
  add(root, "logits", dump.logits, of_options, "nat", "logits of the options; -inf beyond a row's options");
  add(root, "posterior_log_prob", dump.posterior_log_prob, of_choices, "nat",
      "log-probability of the choice under the posterior");
  add(root, "posterior_logits", dump.posterior_logits, of_options, "nat",
      "logits of the posterior the choices are drawn from; -inf beyond a row's options");
  for (const auto& [name, value] : dump.numbers) {
    const bool log_density = name.ends_with("log_prob");
    add(root, name, value, {"step", "row", "column"}, log_density ? "nat" : "1",
        name == "value" ? "number chosen"
        : log_density   ? "log-density of the number chosen"
                        : name + " of its distribution");
  }
  add(root, "site", shaped<std::string>({dump.sites.size()}, dump.sites), {"step"}, "1", "site of the query in the model");
  add(root, "loss", dump.loss, {aligned ? "step" : "loss_step", "row"}, "nat",
      "loss incurred at the step; divergences of target=elbo are losses, too");
  add(root, "row_example", shaped<int>({dump.row_example.size()}, dump.row_example), {"row"}, "1",
      "position in the batch of the row's example");

  if (!dump.batch.id.empty()) {
    batch.axes.push_back({"example", count_up(dump.batch.id.size())});
    batch.variables.push_back({"id",
                               {"example"},
                               std::vector<std::int64_t>(dump.batch.id.begin(), dump.batch.id.end()),
                               described("1", "identity of the example in its data set")});
  }
  for (const auto& [name, field] : dump.batch.integers) add_field(batch, name, field);
  for (const auto& [name, field] : dump.batch.reals) add_field(batch, name, field);
  for (const auto& [name, field] : dump.words) add_field(batch, name + "_text", field);

  std::vector<Archive::Group> groups = {
      {"parameters", named_dataset(dump.parameters)}, {"gradient", named_dataset(dump.gradient)}, {"batch", std::move(batch)}};
  if (!dump.constants.empty()) groups.push_back({"constants", named_dataset(dump.constants)});
  if (!dump.dropout.empty()) {
    Dataset factors;
    for (const auto& [name, value] : dump.dropout)
      add_by_example(factors, name, value, "factor of each entry of the " + name + ": 0 if dropped, else 1 / (1 - dropout)");
    groups.push_back({"dropout", std::move(factors)});
  }
  for (auto& group : groups) lift_axes(group.data, root);
  archive.groups.push_back({"", std::move(root)});
  for (auto& group : groups) archive.groups.push_back(std::move(group));
  write_archive(path, std::move(archive), false);
}

template Dataset named_dataset<float>(const std::vector<NamedArray<float>>&);
template Dataset named_dataset<double>(const std::vector<NamedArray<double>>&);
template void write_gradient<float>(const std::string&, const GradientDump<float>&);
template void write_gradient<double>(const std::string&, const GradientDump<double>&);

}  // namespace hardgrad::storage
