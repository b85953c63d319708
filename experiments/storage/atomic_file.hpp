// Reading and writing of files by plain system calls. Writing is atomic: a path holds the old file or the new one, never part
// of one; appending may leave part of the appended bytes.
#pragma once

#include <cstddef>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/support/error.hpp"

namespace hardgrad::storage {

/// A file that is there but cannot be read here and now, as without permission.
struct Unreadable : InputError {
  using InputError::InputError;
};

/// A regular file, open to be read: of one file, even if another one takes its name meanwhile.
class OpenFile {
 public:
  /// InputError if it is missing or a folder, Unreadable.
  explicit OpenFile(const std::string& path);
  OpenFile(OpenFile&& other) noexcept;
  ~OpenFile();
  /// When it was opened.
  std::size_t size() const { return size_; }
  int descriptor() const { return descriptor_; }
  /// The bytes from byte `at` on, at most `most`.
  std::string read(std::size_t at = 0, std::size_t most = std::string::npos) const;
  /// f(bytes) for blocks of the first `end` bytes, in order.
  void each_block(std::size_t end, const std::function<void(std::string_view)>& f) const;

 private:
  friend std::optional<OpenFile> open_if_there(const std::string& path);
  OpenFile(int descriptor, const std::string& path);

  int descriptor_;
  std::string path_;
  std::size_t size_ = 0;
};
/// Empty if the file does not exist.
std::optional<OpenFile> open_if_there(const std::string& path);

/// The bytes of a regular file from byte `at` on, at most `most`. InputError if it is missing, a folder or unreadable.
std::string read_file(const std::string& path, std::size_t at = 0, std::size_t most = std::string::npos);

/// The same; empty if the file does not exist, or does not any more.
std::optional<std::string> read_if_there(const std::string& path, std::size_t at = 0, std::size_t most = std::string::npos);

/// f(line) for each line of a file, without its break; it is read in blocks. InputError as for read_file.
void each_line(const std::string& path, const std::function<void(std::string_view)>& f);

/// Writes a temporary file with a unique name in the same folder, then fsync, rename, fsync of the folder. A symbolic link
/// keeps its target. UsageError (and no file left) if the folder is missing or cannot be written, the disk is full, or the
/// path is a folder or a device.
void write_file(const std::string& path, const std::string& bytes);

/// The same; `fill(path)` makes the content of the temporary file, which exists and is empty, and makes it durable.
void write_file(const std::string& path, const std::function<void(const std::string&)>& fill);

/// The same, but an existing file is kept: then returns false. At most one of several processes creates the file. Without
/// `keep_name`, the folder's fsync is left out: if the machine stops at once, the file may be gone, but never incomplete.
bool write_new_file(const std::string& path, const std::string& bytes, bool keep_name = true);

/// Appends in one write, then fsync, and of the folder if the file is new. UsageError if this fails; the file then has its old
/// length, if the file system still allows this. Returns the length before.
std::size_t append_to_file(const std::string& path, const std::string& bytes);

/// The current time of a folder's file system, in seconds; it can differ from this machine's. This machine's time if the folder
/// is not writable.
std::time_t folder_time(const std::string& folder);

/// Whether a process that wrote at a time in a folder will not go on: it is dead or, if that is unknown, an hour has passed.
bool is_abandoned(const std::string& process, std::time_t written, const std::string& folder);

/// An incomplete file of a process that was killed or is still writing.
struct StaleTempFile {
  std::string path;
  std::size_t bytes = 0;
  bool abandoned = false;  ///< its process is dead or, if that is unknown, the file is an hour old
};
/// The stale files in a folder, or only those of the file `name`. Empty if the folder cannot be read.
std::vector<StaleTempFile> stale_files(const std::string& folder, const std::string& name = "");
/// Removes abandoned files; returns their number.
std::size_t remove_stale_files(const std::string& folder, const std::string& name = "");

}  // namespace hardgrad::storage
