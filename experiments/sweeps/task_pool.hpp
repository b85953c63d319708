// The data of cells: which they have, and tasks that are shared between cells.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "experiments/sweeps/plan_cell.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::sweeps {

struct CellData {
  std::string task;        ///< spec
  std::uint64_t seed = 0;  ///< of its stream, Key(seed) / "data": `measure --seed` with it uses the same data
  std::string like;        ///< file of the network whose words it has; empty: words of its own
  auto operator<=>(const CellData&) const = default;
};

/// The seed of the streams of a cell, derived from its task and seed. Of a task that reads files, only the name counts: the same
/// file has the same splits under every path, and with every size of the vocabulary.
std::uint64_t run_seed(std::uint64_t root_seed, const AxisValues& axes);

/// The data of a cell. If train.start or train.reference is a file, a network trained on the same task, data have that network's
/// words, stream and so its splits: its training examples are not tested on.
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

}  // namespace hardgrad::sweeps
