// A cell's complete result.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "experiments/training/trainer.hpp"

namespace hardgrad::storage {

enum class CellStatus { ok, failed, skipped };
std::string to_string(CellStatus status);

/// The purpose of a run in a sweep with [tune], from the plan; it is not stored with the cell.
struct TuningRole {
  int round = 0;               ///< of the search, from 1, for a trial; 0: a reported run
  int setting = 0;             ///< which of the settings tried, from 0
  std::string estimator = {};  ///< as the sweep names it, without tuned parameters
  bool kept = false;           ///< of a trial: its setting continued to the next round, or was chosen
  double score = 0;            ///< of a trial: the value of `quantity`
  std::string quantity = {};   ///< of a trial: the tuning criterion, heldout_<loss> or metric_<name>
  std::string edge = {};       ///< of a reported run: its settings at the end of the tried range; empty if there are none
  int tried = 0, failed = 0;   ///< of a reported run: settings tried, trials that failed
};

struct CellRecord {
  std::map<std::string, std::string> axes;  ///< task, model, estimator, seed (decimal or 0x...) and other grid axes
  /// Every parameter of the task, model, estimator and its target, and every setting of training and measurement, defaults
  /// included, as JSON.
  std::string task_settings = "{}", model_settings = "{}", estimator_settings = "{}", target_settings = "{}",
              run_settings = "{}";
  std::string data_hash;  ///< of the contents of the task's files; empty for generated data
  CellStatus status = CellStatus::ok;
  std::string reason;  ///< why it failed or was skipped
  std::string log;     ///< its printed output
  std::string plan_hash, cell_hash;
  std::string precision;                          ///< float | double
  std::string identity;                           ///< the text of the cell's hash: `name=value` lines
  training::TrainResult result;                   ///< partial or empty if it failed
  std::string configuration;                      ///< resolved, as TOML; not stored with the cell: the plan has it
  std::string checkpoint;                         ///< name of the checkpoint file, relative to the cell's folder; empty if none
  std::string checkpoint_hash;                    ///< of its seal, to identify it
  std::map<std::string, double> costs;            ///< further costs: cpu_seconds, tape_bytes, ...
  std::optional<TuningRole> tuning;               ///< in a merged result of a sweep with [tune]
  std::map<std::string, std::string> provenance;  ///< of this build and machine if it is empty when stored
};

/// The state of a stored cell, readable without its numbers: enough for `status` and resuming.
struct CellSummary {
  std::string plan_hash, cell_hash;
  CellStatus status = CellStatus::ok;
  int attempt = 0;                          ///< of several records of the cell, the largest counts
  std::string checkpoint, checkpoint_hash;  ///< as in the record
};

/// The fault of a cell's checkpoint (if it has one) in its folder.
struct CheckpointFault {
  std::string words;  ///< empty: it is complete
  bool lost = false;  ///< it is missing, damaged or another one, and not only unreadable here
};
CheckpointFault check_checkpoint(const std::string& folder, const CellSummary& cell);

}  // namespace hardgrad::storage
