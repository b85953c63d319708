// An unfinished cell: its packed record as the axis `record` of the root, the groups of a checkpoint, and the state of training
// as attributes of the group `training`.
#include "experiments/storage/partial_cell.hpp"

#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "experiments/storage/cell.hpp"

namespace hardgrad::storage {
namespace {

// Numbers of a training that are not among a cell's variables.
struct Field {
  const char* name;
  double (*get)(const training::TrainingProgress&);
  void (*set)(training::TrainingProgress&, double);
};
template <class M>
void put(M& member, double value) {
  member = static_cast<M>(value);
}

#define FIELD(NAME, MEMBER)                                                                                \
  {                                                                                                        \
    NAME, [](const training::TrainingProgress& progress) { return static_cast<double>(progress.MEMBER); }, \
        [](training::TrainingProgress& progress, double value) { put(progress.MEMBER, value); }            \
  }
const Field fields[] = {FIELD("cpu_seconds", cpu_seconds),
                        FIELD("loss_since_logged", loss),
                        FIELD("steps_since_logged", since),
                        FIELD("last_gradient_norm", gradient_norm),
                        FIELD("measuring_seconds", measuring),
                        FIELD("evaluating_seconds", evaluating),
                        FIELD("best_loss", best),
                        FIELD("stale_evaluations", stale),
                        FIELD("at_best", at_best),
                        FIELD("most_tape_bytes", result.tape_bytes),
                        FIELD("all_missed_hints", result.missed_hints)};
#undef FIELD

}  // namespace

void write_partial_cell(const std::string& path, const PartialCell& partial) {
  auto record = partial.record;
  record.result = partial.progress.result;
  const auto bytes = packed(std::move(record));
  Archive archive{.kind = "unfinished",
                  .note = "unfinished hash=" + partial.record.cell_hash + " step=" + std::to_string(partial.checkpoint.step)};
  archive.groups.push_back({"", {.axes = {{"record", std::vector<std::uint8_t>(bytes.begin(), bytes.end())}}}});
  auto groups = groups_of(partial.checkpoint, "training");
  auto& attributes = groups.front().data.attributes;
  for (const auto& field : fields) attributes.emplace_back(field.name, field.get(partial.progress));
  attributes.emplace_back("starting", std::int64_t{partial.starting});
  for (auto& group : groups) archive.groups.push_back(std::move(group));
  archive.groups.push_back({"best_parameters", named_dataset(partial.best)});
  archive.groups.push_back({"older_parameters", named_dataset(partial.older)});
  write_archive(path, std::move(archive), false);
}

PartialCell read_partial_cell(const std::string& path) {
  const auto archive = read_archive(path, "unfinished");
  PartialCell partial;
  const auto* axis = archive.group("").axis("record");
  const auto* bytes = axis ? std::get_if<std::vector<std::uint8_t>>(&axis->labels) : nullptr;
  if (!bytes) throw InputError(path + ": has no record");
  try {
    partial.record = unpacked({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  } catch (const InputError& error) {
    throw InputError(path + ": " + error.what());
  }
  partial.progress.result = partial.record.result;
  partial.checkpoint = checkpoint_of(archive, "training");
  partial.best = arrays_of(archive.group("best_parameters"), archive.path);
  partial.older = arrays_of(archive.group("older_parameters"), archive.path);
  const auto& attributes = archive.group("training").attributes;
  for (const auto& field : fields) {
    if (!find(attributes, field.name)) throw InputError(archive.path + ": has no " + field.name);
    field.set(partial.progress, number(attributes, field.name));
  }
  partial.starting = number(attributes, "starting") == 1;
  return partial;
}

PartialCellSummary peek_partial_cell(const std::string& path) {
  const auto seal = read_seal(path);
  if (seal.kind() != "unfinished") throw InputError(path + ": is a " + seal.kind() + " file, not an unfinished cell");
  const auto step = seal.value("step");
  return {seal.value("hash"), step.empty() ? 0 : std::stoi(step)};
}

template <class T>
void snapshot(const training::Training<T>& training, PartialCell& partial) {
  partial.checkpoint = checkpoint_of(training);
  partial.progress = training.progress;
  partial.best.clear();
  partial.older.clear();
  if (training.older) partial.older = save_parameters(std::as_const(*training.older).parameters());
  if (training.best_values.empty()) return;
  partial.best = save_parameters(std::as_const(*training.model).parameters());
  for (std::size_t i = 0; i < partial.best.size(); ++i)
    partial.best[i].value.storage().assign(training.best_values[i].begin(), training.best_values[i].end());
}

template <class T>
void resume(const PartialCell& partial, training::Training<T>& training, const std::string& where) {
  training.progress = partial.progress;
  training.best_values.clear();
  if (!partial.best.empty()) {  // through the network, which has the names and shapes
    restore_parameters(partial.best, training.model->parameters(), where);
    for (const auto& p : training.model->parameters()) training.best_values.push_back(p.value.storage());
  }
  if (training.older) restore_parameters(partial.older, training.older->parameters(), where);
  restore(partial.checkpoint, training, where);
}

#define HARDGRAD_UNFINISHED(T)                                           \
  template void snapshot<T>(const training::Training<T>&, PartialCell&); \
  template void resume<T>(const PartialCell&, training::Training<T>&, const std::string&);
HARDGRAD_UNFINISHED(float)
HARDGRAD_UNFINISHED(double)

}  // namespace hardgrad::storage
