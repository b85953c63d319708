// What stands at a path, asked so that every answer but a clear one is an error of one line.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/support/error.hpp"

namespace hardgrad {

/// An error number of the system, in words.
inline std::string system_words(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "the disk is full";
    case EFBIG: return "the file would exceed the largest size allowed";
    case EROFS: return "the file system is read-only";
    case ELOOP: return "symbolic links go in a circle";
    case EACCES:
    case EPERM: return "no permission";
    default: return std::strerror(error);
  }
}

enum class Place { nothing, file, folder, other };

/// Symbolic links are followed. `E`, an error of the caller's blame, if it cannot be told: a folder on the way is shut, a
/// name is too long, links go in a circle.
template <class E = InputError>
Place place_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0)
    return S_ISREG(status.st_mode) ? Place::file : S_ISDIR(status.st_mode) ? Place::folder : Place::other;
  if (errno == ENOENT || errno == ENOTDIR) return Place::nothing;
  throw E(path + ": cannot be looked at: " + system_words(errno));
}

/// Refuses what is neither a file nor nothing: reading a FIFO or a device may never end, or fill memory.
template <class E = InputError>
void refuse_strange(const std::string& path) {
  const auto place = place_of<E>(path);
  if (place == Place::folder) throw E(path + ": is a folder, not a file");
  if (place == Place::other) throw E(path + ": is not a regular file");
}

}  // namespace hardgrad
