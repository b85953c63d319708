// Networks from files, to start from or to stay near: their words and the examples of their training.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "experiments/storage/checkpoint.hpp"
#include "experiments/sweeps/plan_cell.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::sweeps {

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
  double share() const { return of ? static_cast<double>(examples) / static_cast<double>(of) : 0; }
  /// "its network was trained on 15 of the 22 test examples"
  std::string text() const;
};
Seen seen_by(const tasks::Task& trained, const tasks::Task& task);

/// Checks the files of a cell against its data: InputError if words differ, UsageError if more was seen than train.start_overlap.
void check_networks(const Cell& cell, const tasks::Task& task);

}  // namespace hardgrad::sweeps
