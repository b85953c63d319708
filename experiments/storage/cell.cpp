// The states of cells in words, the check of their checkpoints, and the records in a file of cells.
#include "experiments/storage/cell.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::storage {

CheckpointFault check_checkpoint(const std::string& folder, const CellSummary& cell) {
  if (cell.checkpoint.empty()) return {};
  const auto file = folder + "/" + cell.checkpoint, whose = " (the checkpoint of cell " + cell.cell_hash + ")";
  try {
    if (read_seal(file).hash != cell.checkpoint_hash) return {file + ": is not the checkpoint of cell " + cell.cell_hash, true};
    return {};
  } catch (const Unreadable& error) {
    return {error.what() + whose, false};
  } catch (const InputError& error) {
    return {error.what() + whose, true};
  }
}

namespace {

constexpr std::string_view mark = cell_mark, sum = " xxh3:";
constexpr std::size_t digits = 16, longest_line = 1024;

struct Head {
  CellSummary cell;
  std::size_t line = 0, bytes = 0;  // lengths: of the line with its break, of the data
  int version = 0;
  std::string data;  // hash
};

template <class N>
bool number_in(const std::string& text, N& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// The line at the start of the bytes; empty if there is no intact one.
std::optional<Head> head_of(std::string_view bytes) {
  if (!bytes.starts_with(mark)) return {};
  const auto end = bytes.substr(0, longest_line).find('\n');
  if (end == std::string_view::npos || end < mark.size() + sum.size() + digits) return {};
  const auto words = bytes.substr(0, end - digits);
  if (!words.ends_with(sum) || bytes.substr(words.size(), digits) != bytes_hash(words)) return {};
  const Seal line{std::string(words.substr(0, words.size() - sum.size())), {}};
  Head head{.cell = {.plan_hash = line.value("plan"),
                     .cell_hash = line.value("hash"),
                     .status = CellStatus::ok,
                     .attempt = 0,
                     .checkpoint = line.value("checkpoint"),
                     .checkpoint_hash = line.value("checkpoint_hash")},
            .line = end + 1,
            .bytes = 0,
            .data = line.value("data")};
  const auto status = value_named(line.value("status"), measurement::statuses);
  head.cell.status = status.value_or(CellStatus::ok);
  if (!number_in(line.value("version"), head.version) || !number_in(line.value("bytes"), head.bytes)) return {};
  const bool complete = status && number_in(line.value("attempt"), head.cell.attempt);
  if (!complete && head.version == record_version) return {};  // another release may write another line
  return head;
}

// The place of the next intact line; npos if there is none.
std::size_t next_record(std::string_view bytes, std::size_t from) {
  auto next = bytes.find(mark, from);
  while (next != std::string_view::npos && !head_of(bytes.substr(next))) next = bytes.find(mark, next + 1);
  return next;
}

// f(name of the cell, its packed data) of a whole record of a known version.
template <class F>
void with_data(std::string_view bytes, const std::string& path, F f) {
  const auto head = head_of(bytes);
  if (!head || bytes.size() != head->line + head->bytes + 1 || bytes.back() != '\n' ||
      bytes_hash(bytes.substr(head->line, head->bytes)) != head->data)
    throw InputError(path + ": damaged: the record of a cell does not match its checksum");
  const auto name = fmt::format("{} (cell {})", path, head->cell.cell_hash);
  if (head->version != record_version)
    throw InputError(fmt::format("{}: is of {} release: records of version {}, this program reads {}", name,
                                 head->version > record_version ? "a newer" : "an older", head->version, record_version));
  try {
    f(name, bytes.substr(head->line, head->bytes));
  } catch (const InputError& error) {
    throw InputError(name + ": " + error.what());
  }
}

}  // namespace

std::string cell_bytes(const CellRecord& record, int attempt) {
  const auto data = packed(record);
  auto bytes = fmt::format("{}version={} plan={} hash={} status={} attempt={}", mark, record_version, record.plan_hash,
                           record.cell_hash, name_of(record.status, measurement::statuses), attempt);
  if (!record.checkpoint_hash.empty())
    bytes += fmt::format(" checkpoint={} checkpoint_hash={}", record.checkpoint, record.checkpoint_hash);
  bytes += fmt::format(" bytes={} data={}{}", data.size(), bytes_hash(data), sum);
  bytes += bytes_hash(bytes) + "\n";
  if (bytes.size() > longest_line || bytes.find('\n') + 1 != bytes.size()) throw Bug("the line of a cell is too long");
  return bytes + data + "\n";
}

CellRecord cell_in(std::string_view bytes, const std::string& path) {
  CellRecord record;
  with_data(bytes, path, [&](const auto&, std::string_view data) { record = unpacked(data); });
  return record;
}

void require_form(std::string_view bytes, const std::string& path) {
  with_data(bytes, path, [](const auto&, std::string_view data) { require_items(data); });
}

std::string damage_words(const CellPlace& place, const std::string& path) {
  return fmt::format("{}: damaged: {} bytes from byte {} on are of no known cell", path, place.size, place.at);
}

CellScan scan_cells(std::string_view bytes) {
  CellScan scan;
  const bool finished = bytes.ends_with('\n');
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto head = head_of(bytes.substr(at));
    if (!head) {
      auto next = next_record(bytes, at + 1);
      if (next == std::string_view::npos && !finished) break;
      next = std::min(next, bytes.size());
      scan.damage.push_back({{}, at, next - at, false});
      at = next;
      continue;
    }
    const auto size = head->line + head->bytes + 1;
    const bool fits = head->bytes <= bytes.size() && at + size <= bytes.size();
    const bool checksum_ok =
        fits && bytes_hash(bytes.substr(at + head->line, head->bytes)) == head->data && bytes[at + size - 1] == '\n';
    if (!checksum_ok) {
      const auto next = next_record(bytes, at + 1);
      if (next < (fits ? at + size : bytes.size())) {  // it is torn: another record begins within it
        scan.damage.push_back({{}, at, next - at, false});
        at = next;
        continue;
      }
      if (!fits || (at + size == bytes.size() && !finished)) break;
    }
    scan.cells.push_back({head->cell, at, size, checksum_ok, head->version});
    at += size;
  }
  scan.end = at;
  return scan;
}

}  // namespace hardgrad::storage
