// Tasks by name.
#include "experiments/tasks/task.hpp"

namespace hardgrad {

std::string to_string(Split split) {
  switch (split) {
    case Split::train: return "train";
    case Split::heldout: return "heldout";
    case Split::test: return "test";
  }
  throw Bug("unknown split");
}

std::unique_ptr<Task> make_task(const Spec& spec, Key data) {
  const auto& entry = Tasks::instance().at(spec.name);
  return entry.make(Settings(entry.name, entry.parameters, spec), data);
}

}  // namespace hardgrad
