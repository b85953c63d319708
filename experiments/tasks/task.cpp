// Tasks by name.
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

std::string to_string(Split split) {
  switch (split) {
    case Split::train: return "train";
    case Split::heldout: return "heldout";
    case Split::test: return "test";
  }
  throw Bug("unknown split");
}

Split split_named(const std::string& name) {
  for (const auto split : {Split::train, Split::heldout, Split::test})
    if (to_string(split) == name) return split;
  throw UsageError("there is no split " + name);
}

std::unique_ptr<Task> make_task(const Spec& spec, Key data, const Task* trained) {
  const auto& entry = Tasks::instance().at(spec.name);
  const Settings settings(entry.name, entry.parameters, spec);
  return trained && entry.make_for ? entry.make_for(settings, data, *trained) : entry.make(settings, data);
}

}  // namespace hardgrad::tasks
