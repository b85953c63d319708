// The bytes of a file of cells (`*.cells`): one record after another, each a line of text and a packed record.
//   HARDGRAD-CELL version=<n> plan=<hash> hash=<hash> status=<ok|failed|skipped> attempt=<n> [checkpoint=<file> checkpoint_hash=<hash>]
//                 bytes=<n> data=<hash of the n bytes> xxh3:<hash of the line so far>
//   <n bytes> and a line break
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/storage/cell.hpp"

namespace hardgrad::storage {

inline constexpr std::string_view cells_ending = ".cells";
/// Of the records that this program writes; it reads no others.
inline constexpr int record_version = 2;

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
  bool sound = true;             ///< its bytes match their hash
  int version = record_version;  ///< not record_version: of another release, which alone reads it
};
struct CellScan {
  std::vector<CellPlace> cells;
  std::vector<CellPlace> damage;  ///< bytes that belong to no record; without a cell
  std::size_t end = 0;            ///< the start of the torn record at the end; the number of bytes if there is none
};
/// Finds the records, also those behind a torn one. The last bytes are a torn record, as a process leaves that is killed or loses power while it writes, if
/// they end early or do not match and do not end in a line break. All else that does not match is damage.
CellScan scan_cells(std::string_view bytes);

/// A line about damaged bytes.
std::string damage_words(const CellPlace& place, const std::string& path);

}  // namespace hardgrad::storage
