// Whole files in and out by plain system calls, so that every failure is seen where it happens.
#include "experiments/storage/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/support/error.hpp"

namespace hardgrad {
namespace {

namespace fs = std::filesystem;

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

std::string why(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT: return "the disk is full";
    case EFBIG: return "the file would exceed the largest size allowed";
    case EROFS: return "the file system is read-only";
    case EACCES:
    case EPERM: return "no permission";
    default: return std::strerror(error);
  }
}

// The file a chain of symbolic links ends at, which may not exist yet.
fs::path follow(fs::path path) {
  std::error_code error;
  for (int links = 0; fs::is_symlink(path, error); ++links) {
    if (links == 40) throw UsageError(path.string() + ": cannot be written: symbolic links go in a circle");
    const auto target = fs::read_symlink(path, error);
    if (error) throw UsageError(path.string() + ": cannot be written: " + error.message());
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

}  // namespace

std::string read_file(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) throw InputError(path + ": cannot be read: " + why(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) throw InputError(path + ": cannot be read: " + why(errno));
  if (S_ISDIR(status.st_mode)) throw InputError(path + ": is a folder, not a file");
  if (!S_ISREG(status.st_mode)) throw InputError(path + ": is not a regular file");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto got = ::read(file.fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(path + ": cannot be read: " + why(errno));
    if (got == 0) break;  // shrunk meanwhile: what is missing will be missed by the seal
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

void write_file(const std::string& given, const std::string& bytes) {
  const auto fail = [&](int error) -> UsageError { return UsageError(given + ": cannot be written: " + why(error)); };
  const fs::path path = follow(given);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (path.filename().empty()) throw UsageError(given + ": cannot be written: a folder, not a file");
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT)
      throw UsageError(given + ": cannot be written: there is no folder " + folder.string() + "; make it first");
    throw fail(errno);
  }
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) throw UsageError(given + ": cannot be written: it is a folder");
    if (!S_ISREG(status.st_mode)) throw UsageError(given + ": cannot be written: it is not a regular file");
  }

  static std::atomic<unsigned> counter{0};
  const fs::path temporary = folder / (std::string(".").append(path.filename().string(), 0, 200) + "." +
                                       std::to_string(::getpid()) + "." + std::to_string(counter++) + ".partial");
  ::unlink(temporary.c_str());  // of a dead process that had our number
  Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  if (file.fd < 0) throw fail(errno);
  try {
    for (std::size_t done = 0; done < bytes.size();) {
      const auto put = ::write(file.fd, bytes.data() + done, bytes.size() - done);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) throw fail(errno);
      done += static_cast<std::size_t>(put);
    }
    if (::fsync(file.fd) != 0) throw fail(errno);
    const int closed = ::close(file.fd);
    file.fd = -1;
    if (closed != 0) throw fail(errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw fail(errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  Descriptor directory{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  // Some shared file systems do not know fsync of a folder (EINVAL): the rename itself stands.
  if (directory.fd >= 0 && ::fsync(directory.fd) != 0 && errno != EINVAL && errno != ENOTSUP) throw fail(errno);
}

}  // namespace hardgrad
