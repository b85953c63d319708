// Saves and restores a run's parameters and learned state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/autodiff/parameter.hpp"
#include "experiments/storage/gradient.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::storage {

/// The data that number a network's words.
struct DataOrigin {
  std::string task;        ///< spec; empty: none
  std::uint64_t seed = 0;  ///< of its stream, as in a checkpoint
  std::string hash;        ///< Task::data_hash
};

/// Numbers are stored in double, which is exact for float runs.
struct Checkpoint {
  std::vector<NamedArray<double>> parameters, own_parameters;
  std::vector<double> optimizer, own_optimizer, estimator_state;
  int step = 0;
  std::string task, model, estimator;  ///< specs
  std::uint64_t seed = 0;              ///< Key(seed) / "data" is the stream of its data, with their splits
  std::string data_hash;               ///< Task::data_hash of its data
  DataOrigin words;                    ///< if its data have the words of another network: the data of that one
  Precision precision = Precision::float32;

  /// The data that number its words.
  DataOrigin words_origin() const { return words.task.empty() ? DataOrigin{task, seed, data_hash} : words; }
};

/// The groups of its file; everything except parameters is in the group `root`.
std::vector<Archive::Group> groups_of(const Checkpoint& checkpoint, const std::string& root);
Checkpoint checkpoint_of(const Archive& archive, const std::string& root);
/// Atomic; UsageError if it cannot be written.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);
/// InputError if missing, damaged or not a checkpoint.
Checkpoint load_checkpoint(const std::string& path);

/// The named arrays of a group; InputError if one is not in double.
std::vector<NamedArray<double>> arrays_of(const Dataset& data, const std::string& path);
/// Copies into a set. InputError `<where>: parameter "x" ...` if a parameter is missing, unknown, of another shape or not
/// finite; the set is then unchanged.
template <class T>
void restore_parameters(const std::vector<NamedArray<double>>& saved, ParameterSet<T>& set, const std::string& where);
/// The same between networks of one shape where either may have a learned posterior that the other lacks. Copies the common
/// parameters. InputError as above for the parameters in `needed`, the network without a posterior.
template <class T>
void restore_shared(const std::vector<NamedArray<double>>& saved, ParameterSet<T>& set, const ParameterSet<T>& needed,
                    const std::string& where);
template <class T>
std::vector<NamedArray<double>> save_parameters(const ParameterSet<T>& set);

/// The complete state of a training. The caller fills in the specs and the seed.
template <class T>
Checkpoint checkpoint_of(const training::Training<T>& training);
/// Restores a checkpoint into a training made from the same specs.
template <class T>
void restore(const Checkpoint& checkpoint, training::Training<T>& training, const std::string& where);

}  // namespace hardgrad::storage
