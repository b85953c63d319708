// The kind of file at a path, with a one-line error if it cannot be determined.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/support/error.hpp"

namespace hardgrad {

/// The message for a system error number.
inline std::string system_words(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "the disk is full";
    case EFBIG: return "the file would exceed the largest size allowed";
    case EROFS: return "the file system is read-only";
    case ELOOP: return "symbolic links form a cycle";
    case EACCES:
    case EPERM: return "no permission";
    default: return std::strerror(error);
  }
}

enum class PathKind { missing, file, folder, other };

/// Follows symbolic links. Throws `E` if the kind cannot be determined: no permission for a folder of the path, too long a
/// name, or a cycle of links.
template <class E = InputError>
PathKind path_kind(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0)
    return S_ISREG(status.st_mode) ? PathKind::file : S_ISDIR(status.st_mode) ? PathKind::folder : PathKind::other;
  if (errno == ENOENT || errno == ENOTDIR) return PathKind::missing;
  throw E(path + ": cannot be read: " + system_words(errno));
}

/// Throws unless the path is a regular file or does not exist: reading a FIFO or a device may never end, or fill memory.
template <class E = InputError>
void reject_control_characters(const std::string& path) {
  const auto kind = path_kind<E>(path);
  if (kind == PathKind::folder) throw E(path + ": is a folder, not a file");
  if (kind == PathKind::other) throw E(path + ": is not a regular file");
}

}  // namespace hardgrad
