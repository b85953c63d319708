// A cell's complete result, and its file. Existence never means done: a file counts only if it proves to be
// whole.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "experiments/storage/archive.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::storage {

enum class CellStatus { ok, failed, skipped };
std::string to_string(CellStatus status);

/// What a run was for in a sweep with [tune], as the plan has it: the cell's file does not know.
struct TuningRole {
  int round = 0;          ///< of the search that it is a trial of, from 1; 0: reported
  int setting = 0;        ///< which of the settings tried, from 0
  std::string estimator;  ///< as the sweep names it, without tuned parameters
  bool kept = false;      ///< of a trial: its setting went on to the next round, or was chosen
  double score = 0;       ///< of a trial: what it was judged by
  std::string quantity;   ///< of a trial: what that is, heldout_<loss> or metric_<name>
  std::string edge;       ///< of a reported run: what of its setting lies at the end of what was tried; empty if nothing does
  int tried = 0, failed = 0;  ///< of a reported run: settings tried, trials that failed
};

struct CellRecord {
  std::map<std::string, std::string> axes;  ///< task, model, estimator, seed (decimal or 0x...) and other grid axes
  std::string estimator_settings = "{}";    ///< every parameter of the estimator, defaults included, as JSON
  std::string run_settings = "{}";          ///< every setting of training and measurement, defaults included, as JSON
  CellStatus status = CellStatus::ok;
  std::string reason;  ///< why it failed or was skipped
  std::string log;     ///< what it printed
  std::string plan_hash, cell_hash;
  std::string identity;                           ///< the text whose hash the cell's is: `name=value` lines
  training::TrainResult result;                   ///< partial or empty if it failed
  std::string configuration;                      ///< resolved, as TOML
  std::string checkpoint;                         ///< name of the checkpoint file, relative to the cell's folder; empty if none
  std::string checkpoint_hash;                    ///< of its seal: that it is this one
  std::map<std::string, double> costs;            ///< further costs: cpu_seconds, tape_bytes, ...
  std::optional<TuningRole> tuning;               ///< in a merged result of a sweep with [tune]
  std::map<std::string, std::string> provenance;  ///< filled by write_cell (of this build, machine) if empty
};

/// What a cell file's seal tells without opening HDF5: enough for `status` and resuming.
struct CellSummary {
  std::string plan_hash, cell_hash;
  CellStatus status = CellStatus::ok;
  std::string checkpoint, checkpoint_hash;  ///< as in the record
};

/// Atomic. UsageError if it cannot be written. Mean gradients of more than 1,000 parameters are left out.
void write_cell(const std::string& path, const CellRecord& record);
/// InputError if it is missing, damaged, incomplete or no cell. NaN in a map of numbers reads as absent, unless there is
/// nothing else under its name: what is read and written again is the same file.
CellRecord read_cell(const std::string& path);
/// The same of an archive, as it is written and as it was read.
Archive archive_of(CellRecord record);
CellRecord cell_of(const Archive& archive);
/// Verified hash of the file and the seal's note; microseconds. InputError as above.
CellSummary peek_cell(const std::string& path);
/// Empty if the checkpoint that belongs to the cell (if one does) stands beside it and is whole, else what is wrong, in words.
std::string check_checkpoint(const std::string& path, const CellSummary& cell);
/// Empty if the file is a whole cell of this plan with this hash (empty: any), and so is its checkpoint, else what is wrong.
std::string check_cell(const std::string& path, const std::string& plan_hash = "", const std::string& cell_hash = "");

}  // namespace hardgrad::storage
