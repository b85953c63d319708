// Tasks by name.
#include "experiments/tasks/task.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {

std::unique_ptr<Task> make_task(const Spec& spec, Key data, const Task* trained) {
  const auto& entry = Tasks::instance().at(spec.name);
  const Settings settings(entry.name, entry.parameters, spec);
  const ReadingRecord read;
  auto task = trained && entry.make_for ? entry.make_for(settings, data, *trained) : entry.make(settings, data);
  task->data_hash_ = read.hash();
  return task;
}

bool reads_files(const Spec& spec) {
  const auto& entry = Tasks::instance().at(spec.name);
  const Settings settings(entry.name, entry.parameters, spec);
  return std::any_of(entry.parameters.begin(), entry.parameters.end(),
                     [&](const auto& info) { return info.is_file && !settings.text(info.name).empty(); });
}

std::vector<std::string> tasks_of(const std::string& model) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : Tasks::instance().entries())
    if (Spec::parse(entry.default_model).name == model) names.push_back(name);
  return names;
}

template <class T>
std::unique_ptr<Model<T>> make_model_for(const Task& task, const Spec& model, Key init, bool posterior) {
  const auto dimensions = task.dimensions();
  if (auto reason = misfit(Models::instance().at(model.name), dimensions); !reason.empty()) {
    const auto own = tasks_of(model.name);
    throw UsageError(own.empty() ? reason : fmt::format("{}; {} is for: {}", reason, model.name, fmt::join(own, ", ")));
  }
  return make_model<T>(model, dimensions, init, posterior);
}

template std::unique_ptr<Model<float>> make_model_for(const Task&, const Spec&, Key, bool);
template std::unique_ptr<Model<double>> make_model_for(const Task&, const Spec&, Key, bool);

}  // namespace hardgrad::tasks
