// An unfinished cell: its results so far, and the state of training.
#pragma once

#include <string>

#include "experiments/storage/cell.hpp"
#include "experiments/storage/checkpoint.hpp"

namespace hardgrad::storage {

struct PartialCell {
  CellRecord record;                      ///< labels; its result is that of `progress`
  Checkpoint checkpoint;                  ///< current network, estimator, optimisers
  training::TrainingProgress progress;    ///< with the curves
  bool starting = false;                  ///< this is the training of the network to start from
  std::vector<NamedArray<double>> best;   ///< parameters of the best evaluation, if training returns to them
  std::vector<NamedArray<double>> older;  ///< of the network that drew the batch's samples, if it is used again
};

/// Atomic; UsageError if it cannot be written.
void write_partial_cell(const std::string& path, const PartialCell& partial);
/// InputError if it is missing, damaged or not an unfinished cell.
PartialCell read_partial_cell(const std::string& path);

/// The content of the seal, read without HDF5.
struct PartialCellSummary {
  std::string cell_hash;
  int step = 0;
};
/// InputError as above.
PartialCellSummary peek_partial_cell(const std::string& path);

/// Stores a training interrupted between two steps in `partial`, except for the record's labels.
template <class T>
void snapshot(const training::Training<T>& training, PartialCell& partial);
/// Restores it into a training made from the same specs and settings. InputError if it does not match; the training is then
/// unusable.
template <class T>
void resume(const PartialCell& partial, training::Training<T>& training, const std::string& where);

}  // namespace hardgrad::storage
