// An unfinished cell: its packed record as the axis `record` of the root, the groups of a checkpoint, and the state of training
// as attributes of the group `training`.
#include "experiments/storage/unfinished.hpp"

#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "experiments/storage/cell.hpp"

namespace hardgrad::storage {
namespace {

// Numbers of a training that are not among a cell's variables.
struct Field {
  const char* name;
  double (*get)(const training::SoFar&);
  void (*set)(training::SoFar&, double);
};
template <class M>
void put(M& member, double value) {
  member = static_cast<M>(value);
}

#define FIELD(NAME, MEMBER)                                                                 \
  {                                                                                         \
    NAME, [](const training::SoFar& so_far) { return static_cast<double>(so_far.MEMBER); }, \
        [](training::SoFar& so_far, double value) { put(so_far.MEMBER, value); }            \
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

void write_unfinished(const std::string& path, const Unfinished& unfinished) {
  auto record = unfinished.record;
  record.result = unfinished.so_far.result;
  const auto bytes = packed(std::move(record));
  Archive archive{
      .kind = "unfinished",
      .note = "unfinished hash=" + unfinished.record.cell_hash + " step=" + std::to_string(unfinished.checkpoint.step)};
  archive.groups.push_back({"", {.axes = {{"record", std::vector<std::uint8_t>(bytes.begin(), bytes.end())}}}});
  auto groups = groups_of(unfinished.checkpoint, "training");
  auto& attributes = groups.front().data.attributes;
  for (const auto& field : fields) attributes.emplace_back(field.name, field.get(unfinished.so_far));
  attributes.emplace_back("starting", std::int64_t{unfinished.starting});
  for (auto& group : groups) archive.groups.push_back(std::move(group));
  archive.groups.push_back({"best_parameters", named_dataset(unfinished.best)});
  archive.groups.push_back({"older_parameters", named_dataset(unfinished.older)});
  write_archive(path, std::move(archive), false);
}

Unfinished read_unfinished(const std::string& path) {
  const auto archive = read_archive(path, "unfinished");
  Unfinished unfinished;
  const auto* axis = archive.group("").axis("record");
  const auto* bytes = axis ? std::get_if<std::vector<std::uint8_t>>(&axis->labels) : nullptr;
  if (!bytes) throw InputError(path + ": has no record");
  try {
    unfinished.record = unpacked({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
  } catch (const InputError& error) {
    throw InputError(path + ": " + error.what());
  }
  unfinished.so_far.result = unfinished.record.result;
  unfinished.checkpoint = checkpoint_of(archive, "training");
  unfinished.best = arrays_of(archive.group("best_parameters"), archive.path);
  unfinished.older = arrays_of(archive.group("older_parameters"), archive.path);
  const auto& attributes = archive.group("training").attributes;
  for (const auto& field : fields) {
    if (!find(attributes, field.name)) throw InputError(archive.path + ": has no " + field.name);
    field.set(unfinished.so_far, number(attributes, field.name));
  }
  unfinished.starting = number(attributes, "starting") == 1;
  return unfinished;
}

UnfinishedSummary peek_unfinished(const std::string& path) {
  const auto seal = read_seal(path);
  if (seal.kind() != "unfinished") throw InputError(path + ": is a " + seal.kind() + " file, not an unfinished cell");
  const auto step = seal.value("step");
  return {seal.value("hash"), step.empty() ? 0 : std::stoi(step)};
}

template <class T>
void put_away(const training::Training<T>& training, Unfinished& unfinished) {
  unfinished.checkpoint = checkpoint_of(training);
  unfinished.so_far = training.so_far;
  unfinished.best.clear();
  unfinished.older.clear();
  if (training.older) unfinished.older = save_parameters(std::as_const(*training.older).parameters());
  if (training.best_values.empty()) return;
  unfinished.best = save_parameters(std::as_const(*training.model).parameters());
  for (std::size_t i = 0; i < unfinished.best.size(); ++i)
    unfinished.best[i].value.storage().assign(training.best_values[i].begin(), training.best_values[i].end());
}

template <class T>
void take_up(const Unfinished& unfinished, training::Training<T>& training, const std::string& where) {
  training.so_far = unfinished.so_far;
  training.best_values.clear();
  if (!unfinished.best.empty()) {  // through the network, which has the names and shapes
    restore_parameters(unfinished.best, training.model->parameters(), where);
    for (const auto& p : training.model->parameters()) training.best_values.push_back(p.value.storage());
  }
  if (training.older) restore_parameters(unfinished.older, training.older->parameters(), where);
  restore(unfinished.checkpoint, training, where);
}

#define HARDGRAD_UNFINISHED(T)                                          \
  template void put_away<T>(const training::Training<T>&, Unfinished&); \
  template void take_up<T>(const Unfinished&, training::Training<T>&, const std::string&);
HARDGRAD_UNFINISHED(float)
HARDGRAD_UNFINISHED(double)

}  // namespace hardgrad::storage
