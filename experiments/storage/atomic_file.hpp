// Whole files in and out: a file is either the old one or the new one, never a part.
#pragma once

#include <string>

namespace hardgrad {

/// All bytes of a regular file. InputError if it is missing, a folder or unreadable.
std::string read_file(const std::string& path);

/// Temporary name in the same folder, write, fsync, rename, fsync of the folder. A symbolic link keeps
/// pointing to what it did. UsageError (and no trace left) if the folder is missing or cannot be written, the
/// disk is full, or the path is a folder or a device.
void write_file(const std::string& path, const std::string& bytes);

}  // namespace hardgrad
