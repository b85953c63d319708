// Reading of files that may be plain, gzipped, damaged or malicious. Every defect is reported as a one-line InputError.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hardgrad::tasks {

/// Throws InputError `path:line:column: what`; a line or column of 0 is left out.
[[noreturn]] void refuse_input(const std::string& path, std::size_t line, std::size_t column, const std::string& what);

/// The place of a file or folder: the path itself, or, for a relative path without a file, the path below the folder in the
/// environment variable HARDGRAD_DATA. A path that is not found is returned unchanged.
std::string find_input(const std::string& path);

/// Limit in bytes on the memory of one unpacked file: the environment variable HARDGRAD_INPUT_LIMIT, in megabytes, or 512. A
/// few kilobytes of gzip can contain gigabytes. UsageError if the variable is not a valid number.
std::size_t input_limit();
/// Throws InputError for a file beyond this limit: `path: <what> more than 512 MB: ...` with the setting that raises it.
[[noreturn]] void refuse_size(const std::string& path, const std::string& what);

/// Records the bytes, unpacked, of the files that this thread reads while it exists.
class ReadingRecord {
 public:
  ReadingRecord();
  ~ReadingRecord();
  ReadingRecord(const ReadingRecord&) = delete;
  ReadingRecord& operator=(const ReadingRecord&) = delete;
  /// 16 hex digits over the contents in the order of reading, whatever the files' names; empty if none was read.
  std::string hash() const;

 private:
  friend class InputFile;
  ReadingRecord* outer_;
  std::string contents_;  // the hash of each
};

/// A file read front to back, unpacked by zlib if it is gzip.
class InputFile {
 public:
  /// InputError if there is no such file, or it is a directory or cannot be read.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Up to `count` bytes; fewer only at the end of the file. InputError if the file is damaged or truncated.
  std::string read(std::size_t count);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  void* file_;
  void* digest_;  // of the bytes read, for a ReadingRecord
};

/// The lines of a text file, without line ends (LF or CRLF) and byte-order mark. Line i has number i + 1 in messages.
struct TextFile {
  std::string path;
  std::vector<std::string> lines;
};

/// Reads text. InputError if it is not UTF-8 (with line and column in bytes), empty, or larger than `input_limit`, which is
/// checked while reading.
TextFile read_text(const std::string& path);

/// Position of the first byte that is not strict UTF-8, or nothing.
std::optional<std::size_t> first_invalid_utf8(std::string_view bytes);

}  // namespace hardgrad::tasks
