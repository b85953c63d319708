// Reading of files that may be plain, gzipped, damaged or malicious. zlib's gzread also reads plain files.
#include "experiments/tasks/loaders/input_file.hpp"

#include <fmt/format.h>
#include <xxhash.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/support/error.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::tasks {
namespace {

constexpr std::size_t chunk = std::size_t{1} << 20;
constexpr std::size_t usual_line = std::size_t{1} << 20, megabyte = 1000000, usual_limit = 512;

gzFile gz(void* file) { return static_cast<gzFile>(file); }
XXH3_state_t* digest(void* state) { return static_cast<XXH3_state_t*>(state); }

thread_local ReadingRecord* recording = nullptr;

}  // namespace

ReadingRecord::ReadingRecord() : outer_(std::exchange(recording, this)) {}
ReadingRecord::~ReadingRecord() { recording = outer_; }

std::string ReadingRecord::hash() const {
  return contents_.empty() ? "" : fmt::format("{:016x}", XXH3_64bits(contents_.data(), contents_.size()));
}

void refuse_input(const std::string& path, std::size_t line, std::size_t column, const std::string& what) {
  std::string where = path;
  if (line > 0) where += fmt::format(":{}", line);
  if (line > 0 && column > 0) where += fmt::format(":{}", column);
  throw InputError(where + ": " + what);
}

std::size_t input_limit() {
  const char* variable = std::getenv("HARDGRAD_INPUT_LIMIT");
  if (!variable || !*variable) return usual_limit * megabyte;
  const auto megabytes = number_of<std::size_t>(variable).value_or(0);
  if (megabytes == 0 || megabytes > 1000 * megabyte)
    throw UsageError(fmt::format("HARDGRAD_INPUT_LIMIT: must be a number of megabytes, got \"{}\"", variable));
  return megabytes * megabyte;
}

void refuse_size(const std::string& path, const std::string& what) {
  const auto megabytes = input_limit() / megabyte;
  refuse_input(path, 0, 0,
               fmt::format("{} more than {} MB: is it damaged? If not, split it, or raise the limit: HARDGRAD_INPUT_LIMIT={}",
                           what, megabytes, 4 * megabytes));
}

std::string find_input(const std::string& path) {
  const char* data = std::getenv("HARDGRAD_DATA");
  std::error_code error;
  if (path.empty() || !data || !*data || std::filesystem::path(path).is_absolute() || std::filesystem::exists(path, error))
    return path;
  const auto below = (std::filesystem::path(data) / path).string();
  return std::filesystem::exists(below, error) ? below : path;
}

InputFile::InputFile(const std::string& path) : path_(path), file_(nullptr), digest_(nullptr) {
  const auto kind = path_kind(path);
  if (kind == PathKind::missing)
    refuse_input(path, 0, 0, "there is no such file, neither here nor below the folder in HARDGRAD_DATA; check the path");
  if (kind == PathKind::folder) refuse_input(path, 0, 0, "is a folder; name a file in it");
  if (kind == PathKind::other) refuse_input(path, 0, 0, "is not a regular file; copy its contents to one");
  errno = 0;
  file_ = gzopen(path.c_str(), "rb");
  if (!file_) refuse_input(path, 0, 0, fmt::format("cannot be opened: {}", std::strerror(errno ? errno : ENOMEM)));
  gzbuffer(gz(file_), 1 << 17);
  if (path.ends_with(".gz") && gzdirect(gz(file_))) {
    gzclose(gz(file_));
    refuse_input(path, 0, 0, "is named .gz but is not gzip; is the download incomplete, or the file already unpacked?");
  }
  if (recording) XXH3_64bits_reset(digest(digest_ = XXH3_createState()));
}

InputFile::~InputFile() {
  gzclose(gz(file_));
  if (!digest_) return;
  if (recording) recording->contents_ += fmt::format("{:016x}", XXH3_64bits_digest(digest(digest_)));
  XXH3_freeState(digest(digest_));
}

std::string InputFile::read(std::size_t count) {
  std::string result;
  while (result.size() < count) {  // grows with the bytes read, not with `count`, which may come from a damaged header
    const auto before = result.size(), wanted = std::min(chunk, count - before);
    result.resize(before + wanted);
    const int got = gzread(gz(file_), result.data() + before, static_cast<unsigned>(wanted));
    result.resize(before + static_cast<std::size_t>(std::max(got, 0)));
    if (digest_) XXH3_64bits_update(digest(digest_), result.data() + before, result.size() - before);
    if (got == static_cast<int>(wanted)) continue;
    int error = Z_OK;
    const char* reason = gzerror(gz(file_), &error);
    if (error == Z_BUF_ERROR) refuse_input(path_, 0, 0, "the gzip file is truncated; get a complete copy (gzip -t checks one)");
    if (got < 0 || error < 0) {
      std::string why = error == Z_ERRNO ? std::strerror(errno) : reason;
      if (why.starts_with(path_ + ": ")) why.erase(0, path_.size() + 2);
      refuse_input(path_, 0, 0, fmt::format("cannot be read: {}; get a fresh copy", why));
    }
    break;
  }
  return result;
}

std::optional<std::size_t> first_invalid_utf8(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto length = utf8_length(bytes, i);
    if (length == 0) return i;
    i += length;
  }
  return {};
}

TextFile read_text(const std::string& path) {
  InputFile file(path);
  const auto limit = input_limit();
  std::string bytes;
  for (std::size_t lines = 0;;) {
    const auto piece = file.read(chunk);
    bytes += piece;
    lines += static_cast<std::size_t>(std::count(piece.begin(), piece.end(), '\n'));
    if (bytes.size() + lines * sizeof(std::string) > limit) refuse_size(path, "its lines take");
    if (piece.size() < chunk) break;
  }
  const auto longest_line = usual_line * std::max<std::size_t>(1, limit / (usual_limit * megabyte));
  TextFile text{path, {}};
  std::size_t start = bytes.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  if (start >= bytes.size()) refuse_input(path, 0, 0, "is empty");
  while (start < bytes.size()) {
    const auto newline = std::min(bytes.find('\n', start), bytes.size());
    std::string_view line(bytes.data() + start, newline - start);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const auto number = text.lines.size() + 1;
    if (line.size() > longest_line)
      refuse_input(
          path, number, 0,
          fmt::format("the line has more than {} bytes: is this a text file? If so, raise the limit: HARDGRAD_INPUT_LIMIT={}",
                      longest_line, usual_limit * (line.size() / usual_line + 1)));
    if (const auto bad = first_invalid_utf8(line))
      refuse_input(path, number, *bad + 1,
                   fmt::format("byte 0x{:02X} is not UTF-8; convert the file, e.g. with iconv -t UTF-8",
                               static_cast<unsigned char>(line[*bad])));
    if (const auto zero = line.find('\0'); zero != std::string_view::npos)
      refuse_input(path, number, zero + 1, "a zero byte; this is not UTF-8 text (is it UTF-16?)");
    text.lines.emplace_back(line);
    start = newline + 1;
  }
  return text;
}

}  // namespace hardgrad::tasks
