// Whole files in and out: a file is either the old one or the new one, never a part.
#pragma once

#include <cstddef>
#include <ctime>
#include <string>
#include <vector>

namespace hardgrad::storage {

/// All bytes of a regular file. InputError if it is missing, a folder or unreadable.
std::string read_file(const std::string& path);

/// Temporary name that no other process has, in the same folder, write, fsync, rename, fsync of the folder. A symbolic link
/// keeps pointing to what it did. UsageError (and no trace left) if the folder is missing or cannot be written, the disk is
/// full, or the path is a folder or a device.
void write_file(const std::string& path, const std::string& bytes);

/// The same, but what is there already stays as it is: then false. Of several processes at most one makes the file.
bool write_new_file(const std::string& path, const std::string& bytes);

/// The time as a folder's file system counts it, in seconds: another machine may have stamped its files. Where nothing can be
/// written, our own.
std::time_t folder_time(const std::string& folder);

/// A file that a process began and did not finish: it was killed, or is at work still.
struct Leftover {
  std::string path;
  std::size_t bytes = 0;
  bool abandoned = false;  ///< nobody will finish it: its process is dead or, where that cannot be told, it is an hour old
};
/// Those in a folder; of the file `name` alone, if it is given. None if the folder cannot be read.
std::vector<Leftover> leftovers(const std::string& folder, const std::string& name = "");
/// Removes what is abandoned; how many there were.
std::size_t remove_leftovers(const std::string& folder, const std::string& name = "");

}  // namespace hardgrad::storage
