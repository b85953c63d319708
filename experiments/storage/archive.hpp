// A file of Hardgrad: groups of labelled datasets, with a kind, a schema version and a seal.
//
// Files are built in memory (HDF5's core driver) and written atomically: a full disk cannot interrupt HDF5. Merged results
// may be larger than memory. They are built on disk, and all files are read there, by a driver that keeps errors from HDF5.
// The seal is verified before HDF5 parses any byte. It is one line of text after the end of the HDF5 data, where every HDF5
// reader ignores it:
//   HARDGRAD-SEAL <note> xxh3:<16 hex digits of the hash of all bytes before them>
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/storage/dataset.hpp"

namespace hardgrad::storage {

inline constexpr std::int64_t schema_version = 2;

struct Archive {
  std::string kind;       ///< result | gradient | checkpoint | unfinished
  std::string note = {};  ///< further text in the seal: at most 400 bytes, no line break
  std::string status = "complete";
  struct Group {
    std::string name;  ///< empty for the root, which comes first
    Dataset data;
  };
  std::vector<Group> groups = {};

  /// InputError (with the file's name) if there is no such group.
  const Dataset& group(const std::string& name) const;
  std::string path = {};  ///< where it was read from
};

/// Writes it atomically. `compress`: chunks with shuffle and gzip. UsageError if the path cannot be written.
void write_archive(const std::string& path, Archive archive, bool compress);

/// The same, compressed, for an archive that does not fit in memory. `archive` has no groups; `groups` are their names, the
/// root first, and the number of labels that `axis` has in each. `fill(add)` calls add(group, dataset) for consecutive blocks
/// of these labels, with the same arrays in each, whose first axis it is. Arrays without it are taken from the first block.
using Lengths = std::vector<std::pair<std::string, std::size_t>>;
using AddBlock = std::function<void(const std::string&, Dataset)>;
void write_in_blocks(const std::string& path, const Archive& archive, const std::string& axis, const Lengths& groups,
                     const std::function<void(const AddBlock&)>& fill);

/// Reads and verifies: seal, HDF5, schema, kind (if `kind` is not empty), completeness. InputError names the fault.
Archive read_archive(const std::string& path, const std::string& kind);
/// Verifies the same, for any kind, and leaves out the values of its variables, so that a file may be larger than memory.
Archive outline(const std::string& path);
struct Seal {
  std::string note;
  std::string hash;  ///< 16 hexadecimal digits: the hash of all bytes before them
  /// The note's first word: the kind of the file.
  std::string kind() const { return note.substr(0, note.find(' ')); }
  /// The value of the note's word `name=value`; empty if there is none.
  std::string value(const std::string& name) const;
};
/// Reads and verifies only the seal, without HDF5; InputError if the file is damaged or truncated.
Seal read_seal(const std::string& path);
/// The first bytes of a file of cells (cell.hpp). Such a file is not an archive.
inline constexpr std::string_view cell_mark = "HARDGRAD-CELL ";
/// 16 hexadecimal digits: the XXH3 of the bytes.
std::string bytes_hash(std::string_view bytes);

}  // namespace hardgrad::storage
