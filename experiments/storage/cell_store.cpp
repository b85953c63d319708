#include "experiments/storage/cell_store.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <sstream>

#include "core/support/error.hpp"
#include "experiments/storage/process.hpp"

namespace hardgrad::storage {
namespace {

namespace fs = std::filesystem;

std::string ending_of(const Shard& shard) {
  return shard.shards == 1 ? "" : fmt::format(".{}-{}-{}", shard.numbering, shard.shard, shard.shards);
}

void shift(std::vector<CellPlace>& places, std::size_t by) {
  for (auto& place : places) place.at += by;
}

}  // namespace

CellStore::CellStore(std::string folder, Shard shard)
    : folder_(std::move(folder)),
      shard_(std::move(shard)),
      own_(fmt::format("{}/{}.{}{}{}", folder_, this_process(), random_name(), ending_of(shard_), cells_ending)) {
  refresh();
}

// Whether the shard in a file's name has no cell in common with ours.
bool CellStore::is_disjoint(const std::string& name) const {
  if (shard_.shards == 1) return false;
  const auto dot = name.rfind('.', name.size() - cells_ending.size() - 1);
  std::istringstream words(name.substr(dot + 1, name.size() - cells_ending.size() - dot - 1));
  std::string numbering;
  std::size_t shard = 0, shards = 0;
  char dash = 0;
  if (!std::getline(words, numbering, '-') || !(words >> shard >> dash >> shards) || shard == 0 || shards == 0) return false;
  const auto common = std::gcd(shards, shard_.shards);
  return numbering == shard_.numbering && shard % common != shard_.shard % common;
}

// Whether the file is another one than when it was scanned, so that its known records no longer hold.
bool CellStore::has_changed(const std::string& path, File& file) const {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) status = {};
  const bool other = file.inode != status.st_ino || static_cast<std::size_t>(status.st_size) < file.size;
  const bool forget = other && file.has_cells;
  if (other) file = {};
  file.inode = status.st_ino;
  file.written = status.st_mtime;
  file.there = static_cast<std::size_t>(status.st_size);
  return forget;
}

// Scans the new bytes of the file.
void CellStore::look_at(const std::string& path, File& file) {
  if (file.there == file.size) return;
  try {
    add(path, file, read_if_there(path, file.end).value_or(""));  // removed by a process that mends the folder
    file.unreadable.clear();
  } catch (const InputError& error) {
    file.unreadable = error.what();
  }
}

// Adds records at the end of the known ones.
void CellStore::add(const std::string& path, File& file, std::string_view bytes) {
  auto scan = scan_cells(bytes);
  shift(scan.cells, file.end);
  shift(scan.damage, file.end);
  const auto rank = [](const CellPlace& p) { return std::pair(p.checksum_ok, p.cell.attempt); };
  for (const auto& place : scan.cells) {
    file.has_cells = true;
    file.whole = file.whole && place.checksum_ok;
    const auto [it, added] = cells_.emplace(place.cell.cell_hash, Found{&path, place});
    if (!added && rank(place) >= rank(it->second.place)) it->second = {&path, place};
  }
  file.whole = file.whole && scan.damage.empty();
  file.damage.insert(file.damage.end(), scan.damage.begin(), scan.damage.end());
  file.size = file.end + bytes.size();
  file.end += scan.end;
}

void CellStore::refresh() {
  std::lock_guard guard(mutex_);
  std::set<std::string> there;
  std::error_code error;
  for (fs::directory_iterator entry(folder_, error), end; !error && entry != end; entry.increment(error))
    if (const auto name = entry->path().filename().string();
        name.ends_with(cells_ending) && !name.starts_with('.') && !is_disjoint(name))
      there.insert(folder_ + "/" + name);
  bool again = std::erase_if(files_, [&](const auto& file) { return !there.contains(file.first); }) > 0;
  for (const auto& path : there) again = has_changed(path, files_[path]) || again;
  if (again) {  // rare; the records of a file are known by cell only
    cells_.clear();
    for (auto& [path, file] : files_)
      file = {.inode = file.inode, .written = file.written, .there = file.there, .damage = {}, .unreadable = {}};
  }
  for (auto& [path, file] : files_) look_at(path, file);
}

std::optional<StoredCell> CellStore::find(const std::string& hash) const {
  std::lock_guard guard(mutex_);
  const auto it = cells_.find(hash);
  if (it == cells_.end()) return {};
  return StoredCell{it->second.place.cell, *it->second.path, it->second.place.checksum_ok};
}

std::vector<std::string> CellStore::hashes() const {
  std::lock_guard guard(mutex_);
  std::vector<std::string> all;
  for (const auto& [hash, found] : cells_) all.push_back(hash);
  return all;
}

CellRecord CellStore::read(const std::string& hash) const {
  std::string path;
  CellPlace place;
  {
    std::lock_guard guard(mutex_);
    const auto it = cells_.find(hash);
    if (it == cells_.end()) throw InputError(fmt::format("{}: holds no cell {}", folder_, hash));
    path = *it->second.path;
    place = it->second.place;
  }
  auto record = cell_in(read_file(path, place.at, place.size), path);
  if (record.cell_hash != hash)  // another file of that name, whose records happen to begin at the same bytes
    throw InputError(fmt::format("{}: has changed since it was read: cell {} is elsewhere now; run this again", path, hash));
  return record;
}

std::string CellStore::unreadable(const std::string& hash, Trial trial) const {
  std::string path;
  CellPlace place;
  {
    std::lock_guard guard(mutex_);
    const auto it = cells_.find(hash);
    if (it == cells_.end() || !it->second.place.checksum_ok) return {};
    if (it->second.unreadable) return *it->second.unreadable;
    path = *it->second.path;
    place = it->second.place;
  }
  std::string why;
  try {
    const auto bytes = read_file(path, place.at, place.size);
    if (trial == Trial::whole)
      cell_in(bytes, path);
    else
      require_form(bytes, path);
  } catch (const InputError& error) {
    why = error.what();
  }
  if (why.empty() && trial == Trial::form) return {};
  std::lock_guard guard(mutex_);
  if (const auto it = cells_.find(hash); it != cells_.end() && *it->second.path == path && it->second.place.at == place.at)
    it->second.unreadable = why;
  return why;
}

std::string CellStore::fault(const std::string& hash) const {
  const auto entry = find(hash);
  if (!entry) return fmt::format("{}: holds no cell {}", folder_, hash);
  if (!entry->checksum_ok)
    return fmt::format("{}: damaged: the record of cell {} does not match its checksum", entry->path, hash);
  if (auto why = unreadable(hash); !why.empty()) return why;
  return check_checkpoint(folder_, entry->cell).words;
}

void CellStore::append(const CellRecord& record) {
  const auto known = find(record.cell_hash);
  const auto bytes = cell_bytes(record, known ? known->cell.attempt + 1 : 1);
  const auto length = append_to_file(own_, bytes);
  {
    std::lock_guard guard(mutex_);
    const auto it = files_.try_emplace(own_).first;
    auto& [path, file] = *it;
    if (length == file.end && length == file.size) {  // the rest of the folder is as it was
      if (length == 0) has_changed(path, file);
      return add(path, file, bytes);
    }
    file.inode = 0;  // a file that was removed and made again may have the old inode
  }
  refresh();
}

std::size_t CellStore::files() const {
  std::lock_guard guard(mutex_);
  return files_.size();
}

std::vector<std::string> CellStore::damage() const {
  std::lock_guard guard(mutex_);
  std::vector<std::string> lines;
  for (const auto& [path, file] : files_) {
    if (!file.unreadable.empty()) lines.push_back(file.unreadable);
    for (const auto& place : file.damage) lines.push_back(damage_words(place, path));
  }
  return lines;
}

bool CellStore::abandoned(const std::string& path, const File& file) const {
  const auto name = fs::path(path).filename().string();
  return is_abandoned(name.substr(0, name.find('.')), file.written, folder_);
}

std::vector<StaleTempFile> CellStore::torn() const {
  std::lock_guard guard(mutex_);
  std::vector<StaleTempFile> stale;
  for (const auto& [path, file] : files_)
    if (file.end < file.size && abandoned(path, file)) stale.push_back({path, file.size - file.end, true});
  return stale;
}

std::size_t CellStore::repair() {
  std::size_t torn = 0;
  {
    std::lock_guard guard(mutex_);
    for (const auto& [path, file] : files_) {
      if (!file.unreadable.empty() || (file.whole && file.end == file.size) || !abandoned(path, file)) continue;
      const auto bytes = read_file(path);  // another process may have repaired it since
      std::string kept;
      for (const auto& place : scan_cells(bytes).cells)
        if (place.checksum_ok) kept += bytes.substr(place.at, place.size);
      if (kept.empty())
        ::unlink(path.c_str());
      else
        write_file(path, kept);
      torn += file.end < file.size;
    }
  }
  refresh();
  return torn;
}

}  // namespace hardgrad::storage
