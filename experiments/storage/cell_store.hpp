// The finished cells of a sweep: files of cells in one folder, one of each process.
//
// A process appends each cell that it finishes to its own file, `<process>.<random>[.<share>].cells`, with one write and one
// fsync. No other process writes this file while that one lives, so no locks are needed. A killed process leaves at most a torn
// record at its end, which counts as no record, and which the next run removes. Copying the files of two folders into one joins
// them.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/cell.hpp"

namespace hardgrad::storage {

/// Where a cell is stored.
struct StoredCell {
  CellSummary cell;
  std::string path;
  bool checksum_ok = true;  ///< its record matches its hash
};

/// Of the cells that one way of numbering numbers: those with number % shards == shard - 1.
struct Shard {
  std::string numbering = {};  ///< a hash of it
  std::size_t shard = 1, shards = 1;
};

/// An index of the folder's records, as of the last refresh. Thread-safe.
class CellStore {
 public:
  /// The folder need not exist. With a shard, it is in the name of this process's file, and files are not read whose shards
  /// have no cell in common with it: the processes of an array then do not read each other's files.
  explicit CellStore(std::string folder, Shard shard = {});
  const std::string& folder() const { return folder_; }
  /// The path of this process's file.
  const std::string& own() const { return own_; }
  /// Reads the records written since. Files that cannot be read are without records, and are named by damage().
  void refresh();

  /// Of several records of a cell: the sound one with the most attempts.
  std::optional<StoredCell> find(const std::string& hash) const;
  /// The hashes of all cells.
  std::vector<std::string> hashes() const;
  /// Why this program cannot read the cell's sound record: it is of a newer release, or its content is of no known form. Empty
  /// if it can. Each record is read once; with `Trial::form`, only its form is checked, in a fraction of the time.
  enum class Trial { form, whole };
  std::string unreadable(const std::string& hash, Trial trial = Trial::whole) const;
  /// InputError if there is no sound record, it has changed, or it is unreadable.
  CellRecord read(const std::string& hash) const;
  /// Empty if the cell has a sound and readable record and its checkpoint is complete, else the fault in words.
  std::string fault(const std::string& hash) const;
  /// Appends to this process's file, as a further attempt. UsageError if it cannot be written.
  void append(const CellRecord& record);

  std::size_t files() const;
  /// One line for each file that cannot be read, and for damaged bytes of unknown cells.
  std::vector<std::string> damage() const;
  /// Files with a torn record of a process that was killed.
  std::vector<StaleTempFile> torn() const;
  /// Removes torn and damaged records from the files of dead processes, and keeps unreadable ones; returns the number of torn
  /// ones.
  std::size_t repair();

 private:
  struct File {
    std::uint64_t inode = 0;
    std::time_t written = 0;
    std::size_t there = 0;                 // its size at the last look
    std::size_t size = 0, end = 0;         // of the file, when it was scanned; of its records
    bool has_cells = false, whole = true;  // whole: nothing in it is damaged
    std::vector<CellPlace> damage;
    std::string unreadable;  // why
  };
  struct Found {
    const std::string* path;
    CellPlace place;
    std::optional<std::string> unreadable = {};  // why; empty until it was tried
  };
  bool is_disjoint(const std::string& name) const;
  bool has_changed(const std::string& path, File& file) const;
  void look_at(const std::string& path, File& file);
  void add(const std::string& path, File& file, std::string_view bytes);
  bool abandoned(const std::string& path, const File& file) const;

  const std::string folder_;
  const Shard shard_;
  const std::string own_;
  mutable std::mutex mutex_;
  std::map<std::string, File> files_;
  mutable std::unordered_map<std::string, Found> cells_;
};

}  // namespace hardgrad::storage
