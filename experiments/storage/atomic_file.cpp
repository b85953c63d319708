// Reading and writing of complete files by plain system calls, which report every failure.
#include "experiments/storage/atomic_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

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

// Bytes from `at` up to `end` or the end of the file.
std::string bytes_of(int fd, const std::string& path, std::size_t at, std::size_t end) {
  std::string bytes(end - at, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto got = ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Unreadable(path + ": cannot be read: " + system_words(errno));
    if (got == 0) break;  // the file has shrunk
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

int open_to_read(const std::string& path) { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

// An error number, or 0.
int write_all(int fd, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const auto put = ::write(fd, bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    done += static_cast<std::size_t>(put);
  }
  return ::fsync(fd) == 0 ? 0 : errno;
}

// Makes the names in a folder durable. Some shared file systems do not support this (EINVAL); the names are still valid.
int sync_folder(const fs::path& folder) {
  const Descriptor directory{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  return directory.fd >= 0 && ::fsync(directory.fd) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
}

// ".<file>.<process>.<random>.partial"
std::string temporary_name(const std::string& file) {
  return std::string(".").append(file, 0, 150) + "." + this_process() + "." + random_name() + partial;
}

}  // namespace

OpenFile::OpenFile(const std::string& path) : OpenFile(open_to_read(path), path) {}

OpenFile::OpenFile(int descriptor, const std::string& path) : descriptor_(descriptor), path_(path) {
  struct stat status {};
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    const auto words = path + ": cannot be read: " + system_words(errno);
    if (errno == ENOENT || errno == ENOTDIR) throw InputError(words);
    throw Unreadable(words);
  }
  const bool folder = S_ISDIR(status.st_mode);
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw InputError(path + (folder ? ": is a folder, not a file" : ": is not a regular file"));
  }
  size_ = static_cast<std::size_t>(status.st_size);
}

OpenFile::OpenFile(OpenFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)), size_(other.size_) {}

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string OpenFile::read(std::size_t at, std::size_t most) const {
  const auto from = std::min(at, size_);
  return bytes_of(descriptor_, path_, from, from + std::min(most, size_ - from));
}

void OpenFile::each_block(std::size_t end, const std::function<void(std::string_view)>& f) const {
  constexpr std::size_t block = 1 << 20;
  for (std::size_t at = 0; at < end; at += block) f(read(at, std::min(block, end - at)));
}

std::optional<OpenFile> open_if_there(const std::string& path) {
  const int descriptor = open_to_read(path);
  if (descriptor < 0 && errno == ENOENT) return {};
  return OpenFile(descriptor, path);
}

std::optional<std::string> read_if_there(const std::string& path, std::size_t at, std::size_t most) {
  const auto file = open_if_there(path);
  if (!file) return {};
  return file->read(at, most);
}

void each_line(const std::string& path, const std::function<void(std::string_view)>& f) {
  const OpenFile file(path);
  std::string rest;  // the start of a line whose end is in the next block
  file.each_block(file.size(), [&](std::string_view more) {
    rest += more;
    std::string_view left = rest;
    for (std::size_t end; (end = left.find('\n')) != std::string_view::npos; left.remove_prefix(end + 1))
      f(left.substr(0, end));
    rest.erase(0, rest.size() - left.size());
  });
  if (!rest.empty()) f(rest);
}

std::string read_file(const std::string& path, std::size_t at, std::size_t most) { return OpenFile(path).read(at, most); }

std::size_t append_to_file(const std::string& path, const std::string& bytes) {
  const auto fail = [&](int error) { throw UsageError(path + ": cannot be written: " + system_words(error)); };
  Descriptor file{::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666)};
  struct stat status {};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) fail(errno);
  if (const int error = write_all(file.fd, bytes)) {
    (void)!::ftruncate(file.fd, status.st_size);  // if this fails, too, a torn end remains, which readers recognise
    fail(error);
  }
  if (status.st_size == 0)
    if (const int error = sync_folder(fs::path(path).parent_path())) fail(error);
  return static_cast<std::size_t>(status.st_size);
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

auto filled_with(const std::string& bytes) {
  return [&](int fd, const fs::path&) { return write_all(fd, bytes); };
}

// fill(descriptor, path): an error number, or 0.
template <class Fill>
bool write(const std::string& given, const Fill& fill, bool replace, bool keep_name = true) {
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
    if (const int error = fill(file.fd, temporary)) throw fail(error);
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
  if (!keep_name) return true;
  if (const int error = sync_folder(folder)) throw fail(error);
  return true;
}

}  // namespace

void write_file(const std::string& path, const std::string& bytes) { write(path, filled_with(bytes), true); }
void write_file(const std::string& path, const std::function<void(const std::string&)>& fill) {
  const auto call = [&](int, const fs::path& temporary) {
    fill(temporary.string());
    return 0;
  };
  write(path, call, true);
}
bool write_new_file(const std::string& path, const std::string& bytes, bool keep_name) {
  return write(path, filled_with(bytes), false, keep_name);
}

std::time_t folder_time(const std::string& folder) {
  const auto probe = fs::path(folder) / temporary_name("time");
  const Descriptor file{::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)};
  struct stat status {};
  const bool told = file.fd >= 0 && ::write(file.fd, "", 1) == 1 && ::fstat(file.fd, &status) == 0;
  if (file.fd >= 0) ::unlink(probe.c_str());
  return told ? status.st_mtime : std::time(nullptr);
}

bool is_abandoned(const std::string& process, std::time_t written, const std::string& folder) {
  const auto life = life_of(process);
  return life == Life::dead || (life == Life::elsewhere && folder_time(folder) - written > abandoned_after);
}

std::vector<StaleTempFile> stale_files(const std::string& folder, const std::string& name) {
  std::vector<StaleTempFile> stale;
  const auto start = std::string(".").append(name, 0, 150) + (name.empty() ? "" : ".");
  std::error_code error;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto file = entry->path().filename().string();
    if (!file.starts_with(start) || !file.ends_with(partial)) continue;
    struct stat status {};
    if (::lstat(entry->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const auto random = file.rfind('.', file.size() - partial.size() - 1);
    const auto process = random == 0 ? std::string::npos : file.rfind('.', random - 1);
    const auto named = process == std::string::npos ? std::string() : file.substr(process + 1, random - process - 1);
    stale.push_back(
        {entry->path().string(), static_cast<std::size_t>(status.st_size), is_abandoned(named, status.st_mtime, folder)});
  }
  return stale;
}

std::size_t remove_stale_files(const std::string& folder, const std::string& name) {
  std::size_t removed = 0;
  for (const auto& stale : stale_files(folder, name)) removed += stale.abandoned && ::unlink(stale.path.c_str()) == 0;
  return removed;
}

}  // namespace hardgrad::storage
