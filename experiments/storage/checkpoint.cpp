// Checkpoints: groups of named arrays and three vectors of state.
#include "experiments/storage/checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/support/error.hpp"
#include "experiments/storage/dataset.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::storage {
namespace {

void add_state(Dataset& data, const std::string& name, const std::vector<double>& state, const std::string& what) {
  if (state.empty()) return;
  data.axes.push_back({name + "_entry", count_up(state.size())});
  data.variables.push_back({name, {name + "_entry"}, state, described("1", what)});
}

std::vector<double> state_of(const Dataset& data, const std::string& name) {
  auto* values = data.values<double>(name);
  return values ? *values : std::vector<double>{};
}

}  // namespace

std::vector<NamedArray<double>> arrays_of(const Dataset& data, const std::string& path) {
  std::vector<NamedArray<double>> result;
  for (const auto& v : data.variables) {
    auto* values = std::get_if<std::vector<double>>(&v.values);
    if (!values) throw InputError(path + ": parameter " + v.name + " is not in double");
    result.push_back({v.name, shaped<double>(data.shape(v), *values)});
  }
  return result;
}

namespace {

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string text;
  for (auto n : shape) text += (text.empty() ? "" : " x ") + std::to_string(n);
  return text;
}

}  // namespace

std::vector<Archive::Group> groups_of(const Checkpoint& checkpoint, const std::string& root_name) {
  Dataset root;
  root.attributes = {{"task", checkpoint.task},
                     {"model", checkpoint.model},
                     {"estimator", checkpoint.estimator},
                     {"seed", static_cast<std::int64_t>(checkpoint.seed)},
                     {"seed_hex", hex_seed(checkpoint.seed)},
                     {"data_hash", checkpoint.data_hash},
                     {"words_task", checkpoint.words.task},
                     {"words_seed_hex", hex_seed(checkpoint.words.seed)},
                     {"words_data_hash", checkpoint.words.hash},
                     {"precision", name_of(checkpoint.precision, precisions)},
                     {"step", static_cast<std::int64_t>(checkpoint.step)}};
  add_state(root, "optimizer", checkpoint.optimizer, "state of the model's optimiser");
  add_state(root, "own_optimizer", checkpoint.own_optimizer, "state of the optimiser of the estimator's networks");
  add_state(root, "estimator_state", checkpoint.estimator_state, "learned numbers of the estimator");
  return {{root_name, std::move(root)},
          {"parameters", named_dataset(checkpoint.parameters)},
          {"own_parameters", named_dataset(checkpoint.own_parameters)}};
}

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  Archive archive{.kind = "checkpoint", .note = "checkpoint step=" + std::to_string(checkpoint.step)};
  archive.groups = groups_of(checkpoint, "");
  add_provenance(archive.groups.front().data.attributes, provenance());
  write_archive(path, std::move(archive), false);
}

Checkpoint load_checkpoint(const std::string& path) { return checkpoint_of(read_archive(path, "checkpoint"), ""); }

Checkpoint checkpoint_of(const Archive& archive, const std::string& root_name) {
  const auto& path = archive.path;
  const auto& root = archive.group(root_name);
  Checkpoint c;
  c.parameters = arrays_of(archive.group("parameters"), path);
  c.own_parameters = arrays_of(archive.group("own_parameters"), path);
  c.optimizer = state_of(root, "optimizer");
  c.own_optimizer = state_of(root, "own_optimizer");
  c.estimator_state = state_of(root, "estimator_state");
  c.task = text(root.attributes, "task");
  c.model = text(root.attributes, "model");
  c.estimator = text(root.attributes, "estimator");
  const auto precision = value_named(text(root.attributes, "precision"), precisions);
  if (!precision) throw InputError(path + ": has no precision");
  c.precision = *precision;
  c.step = static_cast<int>(number(root.attributes, "step"));
  auto* seed = find(root.attributes, "seed");
  if (!seed || !std::holds_alternative<std::int64_t>(*seed)) throw InputError(path + ": has no seed");
  c.seed = static_cast<std::uint64_t>(std::get<std::int64_t>(*seed));
  c.data_hash = text(root.attributes, "data_hash");
  c.words = {text(root.attributes, "words_task"), 0, text(root.attributes, "words_data_hash")};
  if (!c.words.task.empty()) c.words.seed = parse_seed(text(root.attributes, "words_seed_hex"));
  return c;
}

template <class T>
std::vector<NamedArray<double>> save_parameters(const ParameterSet<T>& set) {
  std::vector<NamedArray<double>> result;
  for (const auto& p : set) result.push_back({p.name, p.value});
  return result;
}

template <class T>
void restore_parameters(const std::vector<NamedArray<double>>& saved, ParameterSet<T>& set, const std::string& where) {
  std::size_t wanted = 0;
  for (const auto& p : set) {
    ++wanted;
    const NamedArray<double>* found = nullptr;
    for (const auto& a : saved)
      if (a.name == p.name) found = &a;
    const auto start = where + ": parameter \"" + p.name + "\" ";
    if (!found) throw InputError(start + "is missing: the checkpoint is of another model or estimator");
    if (found->value.shape() != p.value.shape())
      throw InputError(start + "has shape " + shape_text(found->value.shape()) + ", the model needs " +
                       shape_text(p.value.shape()));
    for (double x : found->value)
      if (!std::isfinite(x)) throw InputError(start + "has a non-finite value");
  }
  if (saved.size() != wanted)
    for (const auto& a : saved)
      if (!set.find(a.name))
        throw InputError(where + ": parameter \"" + a.name + "\" is unknown: the checkpoint is of another model or estimator");
  for (const auto& a : saved) {
    auto* p = set.find(a.name);
    for (std::size_t i = 0; i < a.value.size(); ++i) p->value.flat(i) = static_cast<T>(a.value.flat(i));
  }
}

template <class T>
void restore_shared(const std::vector<NamedArray<double>>& saved, ParameterSet<T>& set, const ParameterSet<T>& needed,
                    const std::string& where) {
  std::vector<NamedArray<double>> fitting;
  for (auto& now : save_parameters(std::as_const(set))) {
    const auto same = [&](const auto& other) { return other.name == now.name; };
    if (const auto it = std::find_if(saved.begin(), saved.end(), same); it != saved.end())
      fitting.push_back(*it);
    else if (std::none_of(needed.begin(), needed.end(), same))
      fitting.push_back(std::move(now));  // of the posterior
  }
  restore_parameters(fitting, set, where);
}

template <class T>
Checkpoint checkpoint_of(const training::Training<T>& training) {
  Checkpoint c;
  c.parameters = save_parameters(training.model->parameters());
  if (training.estimator) {
    c.own_parameters = save_parameters(std::as_const(*training.estimator).own_parameters());
    c.estimator_state = training.estimator->state();
  }
  if (training.optimizer) c.optimizer = training.optimizer->state();
  if (training.own_optimizer) c.own_optimizer = training.own_optimizer->state();
  c.step = training.step;
  c.estimator = training.estimator_spec.text;
  c.precision = precision_of<T>;
  return c;
}

template <class T>
void restore(const Checkpoint& checkpoint, training::Training<T>& training, const std::string& where) {
  restore_parameters(checkpoint.parameters, training.model->parameters(), where);
  if (training.estimator) {
    restore_parameters(checkpoint.own_parameters, training.estimator->own_parameters(), where);
    training.estimator->restore(checkpoint.estimator_state);
  }
  if (training.optimizer) training.optimizer->restore(checkpoint.optimizer);
  if (training.own_optimizer) training.own_optimizer->restore(checkpoint.own_optimizer);
  training.step = checkpoint.step;
}

#define HARDGRAD_CHECKPOINT(T)                                                                                       \
  template std::vector<NamedArray<double>> save_parameters<T>(const ParameterSet<T>&);                               \
  template void restore_parameters<T>(const std::vector<NamedArray<double>>&, ParameterSet<T>&, const std::string&); \
  template void restore_shared<T>(const std::vector<NamedArray<double>>&, ParameterSet<T>&, const ParameterSet<T>&,  \
                                  const std::string&);                                                               \
  template Checkpoint checkpoint_of<T>(const training::Training<T>&);                                                \
  template void restore<T>(const Checkpoint&, training::Training<T>&, const std::string&);
HARDGRAD_CHECKPOINT(float)
HARDGRAD_CHECKPOINT(double)

}  // namespace hardgrad::storage
