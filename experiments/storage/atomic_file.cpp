// Reading and writing of complete files by plain system calls, which report every failure.
#include "experiments/storage/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "core/support/error.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/support/path_kind.hpp"

namespace hardgrad::storage {
namespace {

namespace fs = std::filesystem;

const std::string partial = ".partial";
constexpr std::time_t abandoned_after = 60 * 60;  // seconds: writing takes far less

struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

// The file at the end of a chain of symbolic links. It need not exist.
fs::path follow(fs::path path) {
  std::error_code error;
  for (int links = 0; fs::is_symlink(path, error); ++links) {
    if (links == 40) throw UsageError(path.string() + ": cannot be written: symbolic links form a cycle");
    const auto target = fs::read_symlink(path, error);
    if (error) throw UsageError(path.string() + ": cannot be written: " + error.message());
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

// ".<file>.<process>.<random>.partial"
std::string temporary_name(const std::string& file) {
  return std::string(".").append(file, 0, 150) + "." + this_process() + "." + random_name() + partial;
}

}  // namespace

std::string read_file(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) throw InputError(path + ": cannot be read: " + system_words(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) throw InputError(path + ": cannot be read: " + system_words(errno));
  if (S_ISDIR(status.st_mode)) throw InputError(path + ": is a folder, not a file");
  if (!S_ISREG(status.st_mode)) throw InputError(path + ": is not a regular file");
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto got = ::read(file.fd, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(path + ": cannot be read: " + system_words(errno));
    if (got == 0) break;  // the file has shrunk: the seal will not match
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

namespace {

// Renames a complete file; false if the name exists and must not be replaced.
bool publish(const fs::path& temporary, const fs::path& path, bool replace) {
  if (replace) {
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw errno;
    return true;
  }
  const bool made = ::link(temporary.c_str(), path.c_str()) == 0;
  if (!made && errno != EEXIST) {  // a file system without hard links
    const Descriptor place{::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
    if (place.fd < 0 && errno != EEXIST) throw errno;
    if (place.fd >= 0) return publish(temporary, path, true);
  }
  ::unlink(temporary.c_str());
  return made;
}

bool write(const std::string& given, const std::string& bytes, bool replace) {
  const auto fail = [&](int error) -> UsageError { return UsageError(given + ": cannot be written: " + system_words(error)); };
  const fs::path path = follow(given);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (path.filename().empty()) throw UsageError(given + ": cannot be written: a folder, not a file");
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT)
      throw UsageError(given + ": cannot be written: there is no folder " + folder.string() + "; create it first");
    throw fail(errno);
  }
  if (::stat(path.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) throw UsageError(given + ": cannot be written: it is a folder");
    if (!S_ISREG(status.st_mode)) throw UsageError(given + ": cannot be written: it is not a regular file");
  }

  fs::path temporary;
  Descriptor file;
  do {
    temporary = folder / temporary_name(path.filename().string());
    file.fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (file.fd < 0 && errno == EEXIST);
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
    if (!publish(temporary, path, replace)) return false;
  } catch (int error) {
    ::unlink(temporary.c_str());
    throw fail(error);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  Descriptor directory{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  // Some shared file systems do not support fsync of a folder (EINVAL); the rename is still valid.
  if (directory.fd >= 0 && ::fsync(directory.fd) != 0 && errno != EINVAL && errno != ENOTSUP) throw fail(errno);
  return true;
}

}  // namespace

void write_file(const std::string& path, const std::string& bytes) { write(path, bytes, true); }
bool write_new_file(const std::string& path, const std::string& bytes) { return write(path, bytes, false); }

std::time_t folder_time(const std::string& folder) {
  const auto probe = fs::path(folder) / temporary_name("time");
  const Descriptor file{::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  struct stat status {};
  const bool told = file.fd >= 0 && ::write(file.fd, "", 1) == 1 && ::fstat(file.fd, &status) == 0;
  if (file.fd >= 0) ::unlink(probe.c_str());
  return told ? status.st_mtime : std::time(nullptr);
}

std::vector<Leftover> leftovers(const std::string& folder, const std::string& name) {
  std::vector<Leftover> found;
  const auto start = std::string(".").append(name, 0, 150) + (name.empty() ? "" : ".");
  std::time_t now = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto file = entry->path().filename().string();
    if (!file.starts_with(start) || !file.ends_with(partial)) continue;
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const auto random = file.rfind('.', file.size() - partial.size() - 1);
    const auto process = random == 0 ? std::string::npos : file.rfind('.', random - 1);
    const auto life = process == std::string::npos ? Life::elsewhere : life_of(file.substr(process + 1, random - process - 1));
    if (life == Life::elsewhere && now == 0) now = folder_time(folder);
    found.push_back({entry->path().string(), static_cast<std::size_t>(status.st_size),
                     life == Life::dead || (life == Life::elsewhere && now - status.st_mtime > abandoned_after)});
  }
  return found;
}

std::size_t remove_leftovers(const std::string& folder, const std::string& name) {
  std::size_t removed = 0;
  for (const auto& leftover : leftovers(folder, name)) removed += leftover.abandoned && ::unlink(leftover.path.c_str()) == 0;
  return removed;
}

}  // namespace hardgrad::storage
