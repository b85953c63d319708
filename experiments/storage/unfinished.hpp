// A cell that is not done: what it has found so far, and the training from which it goes on.
#pragma once

#include <string>

#include "experiments/storage/cell.hpp"
#include "experiments/storage/checkpoint.hpp"

namespace hardgrad::storage {

struct Unfinished {
  CellRecord record;                     ///< labels; its result is that of `so_far`
  Checkpoint checkpoint;                 ///< network, estimator, optimisers, as they are
  training::SoFar so_far;                ///< with the curves
  bool starting = false;                 ///< the training is the one that makes the network to start from
  std::vector<NamedArray<double>> best;  ///< parameters of the best evaluation, if training goes back to them
};

/// Atomic; UsageError if it cannot be written.
void write_unfinished(const std::string& path, const Unfinished& unfinished);
/// InputError if it is missing, damaged or no unfinished cell.
Unfinished read_unfinished(const std::string& path);
Unfinished unfinished_of(const Archive& archive);

/// What the seal tells without opening HDF5.
struct UnfinishedSummary {
  std::string cell_hash;
  int step = 0;
};
/// InputError as above.
UnfinishedSummary peek_unfinished(const std::string& path);

/// A training that was interrupted between two steps, put away in `unfinished`, but for the record's labels.
template <class T>
void put_away(const training::Training<T>& training, Unfinished& unfinished);
/// Takes it up in a training made from the same specs and settings. InputError if it does not fit: the training is then good
/// for nothing.
template <class T>
void take_up(const Unfinished& unfinished, training::Training<T>& training, const std::string& where);

}  // namespace hardgrad::storage
