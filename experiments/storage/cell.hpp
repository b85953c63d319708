// A cell's complete result, and its file. A cell is done only if its file is verified to be complete.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "experiments/storage/archive.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::storage {

enum class CellStatus { ok, failed, skipped };
std::string to_string(CellStatus status);

/// The purpose of a run in a sweep with [tune], from the plan; it is not in the cell's file.
struct TuningRole {
  int round = 0;              ///< of the search, from 1, for a trial; 0: a reported run
  int setting = 0;            ///< which of the settings tried, from 0
  std::string estimator;      ///< as the sweep names it, without tuned parameters
  bool kept = false;          ///< of a trial: its setting continued to the next round, or was chosen
  double score = 0;           ///< of a trial: the value of `quantity`
  std::string quantity;       ///< of a trial: the tuning criterion, heldout_<loss> or metric_<name>
  std::string edge;           ///< of a reported run: its settings at the end of the tried range; empty if there are none
  int tried = 0, failed = 0;  ///< of a reported run: settings tried, trials that failed
};

struct CellRecord {
  std::map<std::string, std::string> axes;  ///< task, model, estimator, seed (decimal or 0x...) and other grid axes
  std::string estimator_settings = "{}";    ///< every parameter of the estimator, defaults included, as JSON
  std::string run_settings = "{}";          ///< every setting of training and measurement, defaults included, as JSON
  CellStatus status = CellStatus::ok;
  std::string reason;  ///< why it failed or was skipped
  std::string log;     ///< its printed output
  std::string plan_hash, cell_hash;
  std::string identity;                           ///< the text of the cell's hash: `name=value` lines
  training::TrainResult result;                   ///< partial or empty if it failed
  std::string configuration;                      ///< resolved, as TOML
  std::string checkpoint;                         ///< name of the checkpoint file, relative to the cell's folder; empty if none
  std::string checkpoint_hash;                    ///< of its seal, to identify it
  std::map<std::string, double> costs;            ///< further costs: cpu_seconds, tape_bytes, ...
  std::optional<TuningRole> tuning;               ///< in a merged result of a sweep with [tune]
  std::map<std::string, std::string> provenance;  ///< filled by write_cell (of this build, machine) if empty
};

/// The content of a cell file's seal, read without HDF5: enough for `status` and resuming.
struct CellSummary {
  std::string plan_hash, cell_hash;
  CellStatus status = CellStatus::ok;
  std::string checkpoint, checkpoint_hash;  ///< as in the record
};

/// Atomic. UsageError if it cannot be written. Mean gradients of more than 1,000 parameters are omitted.
void write_cell(const std::string& path, const CellRecord& record);
/// InputError if it is missing, damaged, incomplete or not a cell. NaN in a map of numbers is read as absent, unless all values
/// of its name are NaN. Reading and writing again therefore gives the same file.
CellRecord read_cell(const std::string& path);
/// Conversion to and from an archive.
Archive archive_of(CellRecord record);
CellRecord cell_of(const Archive& archive);
/// Verifies the file's hash and reads the seal's note; takes microseconds. InputError as above.
CellSummary peek_cell(const std::string& path);
/// Empty if the cell's checkpoint (if it has one) is beside it and complete, else the fault in words.
std::string check_checkpoint(const std::string& path, const CellSummary& cell);
/// Empty if the file is a complete cell of this plan with this hash (empty: any) and its checkpoint is complete, else the
/// fault in words.
std::string check_cell(const std::string& path, const std::string& plan_hash = "", const std::string& cell_hash = "");

}  // namespace hardgrad::storage
