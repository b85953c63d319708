// Atomic reading and writing of complete files: a path holds the old file or the new one, never part of one.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <vector>

namespace hardgrad::storage {

/// All bytes of a regular file. InputError if it is missing, a folder or unreadable.
std::string read_file(const std::string& path);

/// Writes a temporary file with a unique name in the same folder, then fsync, rename, fsync of the folder. A symbolic link
/// keeps its target. UsageError (and no file left) if the folder is missing or cannot be written, the disk is full, or the
/// path is a folder or a device.
void write_file(const std::string& path, const std::string& bytes);

/// The same, but an existing file is kept: then returns false. At most one of several processes creates the file.
bool write_new_file(const std::string& path, const std::string& bytes);

/// The current time of a folder's file system, in seconds; it can differ from this machine's. This machine's time if the folder
/// is not writable.
std::time_t folder_time(const std::string& folder);

/// An incomplete file of a process that was killed or is still writing.
struct Leftover {
  std::string path;
  std::size_t bytes = 0;
  bool abandoned = false;  ///< its process is dead or, if that is unknown, the file is an hour old
};
/// The leftovers in a folder, or only those of the file `name`. Empty if the folder cannot be read.
std::vector<Leftover> leftovers(const std::string& folder, const std::string& name = "");
/// Removes abandoned files; returns their number.
std::size_t remove_leftovers(const std::string& folder, const std::string& name = "");

}  // namespace hardgrad::storage
