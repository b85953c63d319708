// Reading files that may be plain, gzipped, damaged or hostile: whatever is wrong becomes one clear
// InputError.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hardgrad::tasks {

/// Throws InputError `path:line:column: what`; a line or column of 0 is left out.
[[noreturn]] void refuse_input(const std::string& path, std::size_t line, std::size_t column, const std::string& what);

/// Where a file or folder is: the path itself, or if there is nothing and it is relative, below the folder
/// that the environment variable HARDGRAD_DATA names. A path found nowhere comes back as it was.
std::string find_input(const std::string& path);

/// Bytes of memory that what stands in one file may take when it is unpacked: the environment's HARDGRAD_INPUT_LIMIT, in
/// megabytes, or else 512. A few kilobytes of gzip can hold gigabytes. UsageError if the environment says nonsense.
std::size_t input_limit();
/// Refuses a file that would take more: `path: <what> more than 512 MB: ...` and how to raise the limit.
[[noreturn]] void refuse_size(const std::string& path, const std::string& what);

/// A file read front to back, unpacked by zlib if it is gzip.
class InputFile {
 public:
  /// Throws InputError if there is no such file, or it is a directory or cannot be read.
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Up to `count` bytes; fewer only at the end of the file. Throws InputError if the file is damaged or
  /// truncated.
  std::string read(std::size_t count);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  void* file_;
};

/// A text file's lines, without their ends (LF or CRLF) and without a byte-order mark; line i is number i
/// + 1.
struct TextFile {
  std::string path;
  std::vector<std::string> lines;
};

/// Reads text. Throws InputError where it is not UTF-8 (with line and column in bytes), too large (`input_limit`, which is
/// seen before more is taken) or empty.
TextFile read_text(const std::string& path);

/// Position of the first byte that is no part of strict UTF-8, or nothing.
std::optional<std::size_t> first_invalid_utf8(std::string_view bytes);

}  // namespace hardgrad::tasks
