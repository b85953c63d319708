// The states of cells in words, and the check of their checkpoints.
#include "experiments/storage/cell.hpp"

#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "experiments/storage/atomic_file.hpp"

namespace hardgrad::storage {

std::string to_string(CellStatus status) {
  static const char* names[] = {"ok", "failed", "skipped"};
  return names[static_cast<int>(status)];
}

CheckpointFault check_checkpoint(const std::string& folder, const CellSummary& cell) {
  if (cell.checkpoint.empty()) return {};
  const auto file = folder + "/" + cell.checkpoint, whose = " (the checkpoint of cell " + cell.cell_hash + ")";
  try {
    if (read_seal(file).hash != cell.checkpoint_hash) return {file + ": is not the checkpoint of cell " + cell.cell_hash, true};
    return {};
  } catch (const Unreadable& error) {
    return {error.what() + whose, false};
  } catch (const InputError& error) {
    return {error.what() + whose, true};
  }
}

}  // namespace hardgrad::storage
