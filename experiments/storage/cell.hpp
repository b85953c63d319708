// A cell's complete result, and its bytes: in a file of cells, and packed.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/training/trainer.hpp"

namespace hardgrad::storage {

using CellStatus = measurement::Status;

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
  Precision precision = Precision::float32;
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

// The bytes of a file of cells (`*.cells`): one record after another, each a line of text and a packed record.
//   HARDGRAD-CELL version=<n> plan=<hash> hash=<hash> status=<ok|failed|skipped> attempt=<n>
//                 [checkpoint=<file> checkpoint_hash=<hash>] bytes=<n> data=<hash of the n bytes>
//                 xxh3:<hash of the line so far>
//   <n bytes> and a line break

inline constexpr std::string_view cells_ending = ".cells";
/// Of the records that this program writes; it reads no others.
inline constexpr int record_version = 3;

/// A record's bytes. Mean gradients of more than 1,000 parameters are omitted. `attempt`: of several records of a cell, the one
/// with the largest counts.
std::string cell_bytes(const CellRecord& record, int attempt);
/// The inverse; InputError (with `path`) if the bytes are not one whole record.
CellRecord cell_in(std::string_view bytes, const std::string& path);
/// InputError, as of `cell_in`, if the bytes are not one whole record of a known version, or their data are no packed items.
void require_form(std::string_view bytes, const std::string& path);

struct CellPlace {
  CellSummary cell;
  std::size_t at = 0, size = 0;  ///< of its record, with the line break at its end
  bool checksum_ok = true;       ///< its bytes match their hash
  int version = record_version;  ///< not record_version: of another release, which alone reads it
};
struct CellScan {
  std::vector<CellPlace> cells;
  std::vector<CellPlace> damage;  ///< bytes that belong to no record; without a cell
  std::size_t end = 0;            ///< the start of the torn record at the end; the number of bytes if there is none
};
/// Finds the records, also those behind a torn one. The last bytes are a torn record, as a process leaves that is killed or
/// loses power while it writes, if they end early or do not match and do not end in a line break. All else that does not match
/// is damage.
CellScan scan_cells(std::string_view bytes);

/// A line about damaged bytes.
std::string damage_words(const CellPlace& place, const std::string& path);

// A cell's record as a short string: its members by name, as CBOR (RFC 8949) with typed arrays (RFC 8746), compressed by zlib.

/// Lists of numbers are little-endian typed arrays. Points are in the order of their steps; of several at one step, the last is
/// kept. Mean gradients of more than 1,000 parameters are omitted.
std::string packed(CellRecord record);
/// InputError if the bytes are not of this form. A number of a measurement or of training that they lack has its default.
CellRecord unpacked(std::string_view bytes);
/// InputError if the bytes are not compressed CBOR of whole items: a fraction of the time of `unpacked`.
void require_items(std::string_view bytes);

}  // namespace hardgrad::storage
