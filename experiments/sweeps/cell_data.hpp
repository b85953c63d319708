// One cell of a plan and its data: tasks, shared between cells, and networks from files, to start from or to stay near.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/storage/checkpoint.hpp"
#include "experiments/sweeps/config.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::sweeps {

struct Cell {
  AxisValues axes;        ///< always task, model, estimator and seed; then the other axes of the grid and of [tune]
  CellSettings settings;  ///< with overrides applied
  std::string hash;       ///< 16 hex digits over its identity
  std::string data_hash;  ///< Task::data_hash of its data
  std::string skip;       ///< why it is skipped; empty if it is run
  /// stated_rows of its estimator during training; empty for a skipped cell, or if the cost is not a formula
  std::optional<double> rows = {};
  std::size_t number = 0;   ///< its position in the whole plan, which selects its shard; known before the cell is
  std::size_t round = 0;    ///< of a trial: its round in the search for settings, from 1; 0: a reported run
  std::size_t search = 0;   ///< index of its search in the plan
  std::size_t setting = 0;  ///< index of its setting in the search
  double share = 1;         ///< fraction of a reported run's training: less for a trial

  std::uint64_t seed() const { return std::stoull(axes.at("seed")); }
  Spec spec(const std::string& axis) const { return Spec::parse(axes.at(axis)); }
  /// "task=bits estimator=rloo seed=1 ..."
  std::string label() const;
};

struct CellData {
  std::string task;        ///< spec
  std::uint64_t seed = 0;  ///< of its stream, Key(seed) / "data": `measure --seed` with it uses the same data
  std::string like;        ///< file of the network whose words it has; empty: words of its own
  auto operator<=>(const CellData&) const = default;
};

/// The seed of the streams of a cell, derived from its task and seed. Of a task that reads files, only the name counts: the
/// same file has the same splits under every path, and with every size of the vocabulary.
std::uint64_t run_seed(std::uint64_t root_seed, const AxisValues& axes);

/// The data of a cell. If train.start or train.reference is a file, a network trained on the same task, data have that
/// network's words, stream and so its splits: its training examples are not tested on.
CellData data_of(std::uint64_t root_seed, const Cell& cell);

/// Tasks shared between cells: each is loaded once and released after its last use.
class TaskPool {
 public:
  /// Exceptions of loading are rethrown. InputError if the files have other contents than when this pool first read them.
  std::shared_ptr<const tasks::Task> get(const CellData& data);
  /// Task::data_hash of the data when they were first read, which may be now.
  std::string data_hash(const CellData& data);
  using Users = std::map<CellData, int>;
  /// Sets the remaining number of uses of each task; all others are released.
  void expect(const Users& users);

 private:
  struct Slot {
    std::mutex loading;
    std::shared_ptr<const tasks::Task> task;
    int users = -1;  ///< remaining; negative: never released
  };
  std::mutex mutex_;
  std::map<CellData, std::shared_ptr<Slot>> slots_;
  std::map<std::string, std::string> hashes_;  // by spec
};

/// (setting, file) of train.start and train.reference, those that are files.
std::vector<std::pair<std::string, std::string>> networks_of(const CellSettings& settings);

/// A checkpoint without its numbers. The file is read once for all cells that name it, and again if it has changed. InputError.
storage::Checkpoint labels_of(const std::string& path);
/// The hash in its seal, likewise.
std::string sealed_hash(const std::string& path);

/// The data that a network was trained on, with its words. InputError if their files have other contents now, so that words and
/// splits are lost.
std::shared_ptr<const tasks::Task> trained_task(const storage::Checkpoint& checkpoint, const std::string& path);

/// The share of examples that are held out or to test, and that the network was trained on while the cell is not.
struct Seen {
  tasks::Split split = tasks::Split::heldout;  ///< that with the larger share
  std::size_t examples = 0, of = 0;
  double shard() const { return of ? static_cast<double>(examples) / static_cast<double>(of) : 0; }
  /// "its network was trained on 15 of the 22 test examples"
  std::string text() const;
};
Seen seen_by(const tasks::Task& trained, const tasks::Task& task);

/// Checks the files of a cell against its data: InputError if words differ, UsageError if more was seen than
/// train.start_overlap.
void check_networks(const Cell& cell, const tasks::Task& task);

}  // namespace hardgrad::sweeps
