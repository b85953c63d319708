// Truncated files and files with flipped bits are always recognised, wherever the damage is.
#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "core/support/error.hpp"
#include "experiments/storage/cell.hpp"
#include "experiments/storage/cell_store.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/storage/result_files.hpp"
#include "folder.hpp"
#include "sample.hpp"
#include "tests/support/dead_process.hpp"

namespace hardgrad::testing::damage_test {
using namespace measurement;
using namespace storage;
using namespace tasks;
using namespace training;

namespace {

// Three cells in one file of a dead process, and the records' ends.
struct Sample {
  explicit Sample(const Folder& folder) : path(folder / "0-1-1.0.cells") {
    for (int seed : {1, 2, 3}) {
      const auto record = sample_cell("qa", "memory_reader", "nvil", seed, 2, 0);
      hashes.push_back(record.cell_hash);
      whole += cell_bytes(record, 1);
      ends.push_back(whole.size());
    }
  }
  // The number of cells that count, after the file has these bytes. Each has the numbers that were stored.
  std::size_t intact(const std::string& folder, const std::string& bytes) {
    spill(path, bytes);
    CellStore cells(folder);
    std::size_t count = 0;
    for (const auto& hash : hashes)
      if (const auto entry = cells.find(hash); entry && entry->checksum_ok) {
        CHECK(cells.read(hash).result.log.size() == 31);
        ++count;
      } else {
        CHECK_FALSE(cells.fault(hash).empty());
        CHECK_FALSE(message<InputError>([&] { cells.read(hash); }).empty());
      }
    return count;
  }
  std::string path, whole;
  std::vector<std::string> hashes;
  std::vector<std::size_t> ends;
};

}  // namespace

TEST_CASE("a file of cells truncated anywhere has the cells before, and no damage") {
  Folder folder;
  Sample sample(folder);
  std::size_t wrong = 0, tried = 0;
  const auto try_length = [&](std::size_t length) {
    const auto expected = static_cast<std::size_t>(
        std::count_if(sample.ends.begin(), sample.ends.end(), [&](std::size_t end) { return end <= length; }));
    wrong += sample.intact(folder.string(), sample.whole.substr(0, length)) != expected;
    const CellStore cells(folder.string());
    wrong += !cells.damage().empty();
    const bool between = length == 0 || std::count(sample.ends.begin(), sample.ends.end(), length);
    wrong += check_file(sample.path).empty() != between;
    ++tried;
  };
  for (std::size_t length = 0; length < sample.whole.size(); length += 41) try_length(length);
  for (auto end : sample.ends)
    for (std::size_t length = end - 3; length <= std::min(end + 300, sample.whole.size()); length += 3) try_length(length);
  CHECK(tried > 300);
  CHECK(wrong == 0);
}

TEST_CASE("one bit flipped anywhere in a file of cells loses one cell and is reported") {
  Folder folder;
  Sample sample(folder);
  std::size_t wrong = 0, tried = 0;
  for (std::size_t i = 0; i < sample.whole.size(); i += 23, ++tried) {
    auto flipped = sample.whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    wrong += sample.intact(folder.string(), flipped) != 2;
    wrong += check_file(sample.path).empty();
  }
  CHECK(tried > 300);
  CHECK(wrong == 0);
}

TEST_CASE("torn and damaged records of a dead process are removed, and the others kept") {
  Folder folder;
  Sample sample(folder);
  const auto dead = sample.path = folder / (name_of_the_dead() + ".0.cells");
  const auto repaired = [&](const std::string& bytes) {
    sample.intact(folder.string(), bytes);
    CellStore cells(folder.string());
    const auto torn = cells.torn().size(), removed = cells.repair();
    return std::tuple(torn, removed, slurp(dead));
  };
  const auto& whole = sample.whole;
  const auto two = whole.substr(0, sample.ends[1]);
  CHECK(repaired(whole) == std::tuple(0, 0, whole));
  CHECK(repaired(whole.substr(0, whole.size() - 5)) == std::tuple(1, 1, two));
  CHECK(repaired(two + std::string(4096, '\0')) == std::tuple(1, 1, two));  // a power cut may leave a length without bytes
  auto flipped = whole;
  flipped[sample.ends[1] + 500] ^= 1;
  CHECK(repaired(flipped) == std::tuple(0, 0, two));
  flipped = whole;
  flipped[sample.ends[0] + 20] ^= 1;
  CHECK(repaired(flipped) == std::tuple(0, 0, whole.substr(0, sample.ends[0]) + whole.substr(sample.ends[1])));
  repaired("HARDGRAD");
  CHECK_FALSE(std::filesystem::exists(dead));

  // A living process, and for an hour one of an unknown place, may still write.
  for (const auto& name : {this_process(), std::string("far-1-1")}) {
    sample.path = folder / (name + ".0.cells");
    sample.intact(folder.string(), whole.substr(0, whole.size() - 5));
    CellStore cells(folder.string());
    CHECK(cells.torn().empty());
    CHECK(cells.repair() == 0);
    CHECK(slurp(sample.path).size() == whole.size() - 5);
    std::filesystem::remove(sample.path);
  }
}

TEST_CASE("an intact record behind a torn one is kept, wherever it was torn") {
  Folder folder;
  Sample sample(folder);
  const auto first = sample.whole.substr(0, sample.ends[0]);
  std::size_t tried = 0;
  for (auto length = sample.ends[0] + 1; length < sample.ends[1]; length += 61, ++tried) {  // a disk that was full for a while
    CAPTURE(length);
    const auto torn = sample.whole.substr(0, length) + sample.whole.substr(sample.ends[1]);
    CHECK(sample.intact(folder.string(), torn) == 2);
    CellStore cells(folder.string());
    CHECK(cells.damage().size() == 1);
  }
  CHECK(tried > 40);
  sample.path = folder / (name_of_the_dead() + ".0.cells");
  sample.intact(folder.string(), sample.whole.substr(0, sample.ends[1] - 40) + sample.whole.substr(sample.ends[1]));
  CellStore(folder.string()).repair();
  CHECK(slurp(sample.path) == first + sample.whole.substr(sample.ends[1]));
}

TEST_CASE("a record of another release, or of an unknown form, is neither damaged nor deleted, and is computed again") {
  // The record with other words in its line, or other data, sealed again.
  const auto sealed = [](std::string line, const std::string& data) {
    line = line.substr(0, line.rfind(" bytes=")) + " bytes=" + std::to_string(data.size()) + " data=" + bytes_hash(data) +
           " xxh3:";
    return line + bytes_hash(line) + "\n" + data + "\n";
  };
  const auto record = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
  const auto bytes = cell_bytes(record, 1);
  const auto line = bytes.substr(0, bytes.find('\n')), data = bytes.substr(line.size() + 1, bytes.size() - line.size() - 2);
  auto later = line;
  later.replace(later.find("version=3"), 9, "version=4");
  auto earlier = line;
  earlier.replace(earlier.find("version=3"), 9, "version=2");
  auto other = later;
  other.replace(other.find("status=ok"), 9, "status=resting");
  std::size_t tried = 0;
  for (const auto& [bytes, why] :
       {std::pair{sealed(later, data), "is of a newer release: records of version 4, this program reads 3"},
        {sealed(earlier, data), "is of an older release: records of version 2, this program reads 3"},
        {sealed(other, "nothing known"), "is of a newer release"},
        {sealed(line, "nothing known"), "its content is not a packed cell"}}) {
    CAPTURE(why);
    Folder folder;
    const auto path = folder / (name_of_the_dead() + ".0.cells");
    spill(path, bytes);
    CellStore cells(folder.string());
    CHECK(cells.damage().empty());
    REQUIRE(cells.find(record.cell_hash));
    CHECK(cells.find(record.cell_hash)->checksum_ok);
    CHECK(CellStore(folder.string()).unreadable(record.cell_hash, CellStore::Trial::form).find(why) != std::string::npos);
    CHECK(cells.unreadable(record.cell_hash).find(why) != std::string::npos);
    CHECK(cells.fault(record.cell_hash) == cells.unreadable(record.cell_hash));
    CHECK(check_file(path).size() == 1);
    CHECK(cells.repair() == 0);
    CHECK(slurp(path) == bytes);
    cells.append(record);
    CHECK(cells.unreadable(record.cell_hash).empty());
    CHECK(cells.read(record.cell_hash).result.log.size() == 31);
    CHECK(CellStore(folder.string()).fault(record.cell_hash).empty());
    spill(path, bytes + "torn");
    CellStore(folder.string()).repair();
    CHECK(slurp(path) == bytes);
    ++tried;
  }
  CHECK(tried == 4);
}

TEST_CASE("content that would exhaust the stack or the memory is refused") {
  const auto packed_as = [](const std::string& bytes) {
    uLongf size = compressBound(bytes.size());
    std::string out(size, '\0');
    REQUIRE(compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(),
                      9) == Z_OK);
    return out.substr(0, size);
  };
  std::size_t refused = 0;
  const std::string many(1'000'000, '\x81'), tags(1'000'000, '\xC1'), empty(100'000'000, '\x80'), zeros(300'000'000, '\0');
  for (const auto& bytes : {many + '\0', tags + '\0', "\x9a\x05\xf5\xe1" + std::string(1, '\0') + empty, many,
                            std::string("\x9f\xff"), std::string("\xa1\x61"), zeros})
    refused += !message<InputError>([&] { unpacked(packed_as(bytes)); }).empty();
  CHECK(refused == 7);
}

TEST_CASE("a checkpoint that cannot be read here is not lost") {
  Folder folder;
  const CellSummary cell{
      .plan_hash = "p", .cell_hash = "c", .status = CellStatus::ok, .attempt = 1, .checkpoint = "c.h5", .checkpoint_hash = "0"};
  CHECK(check_checkpoint(folder.string(), cell).lost);  // it is missing
  std::filesystem::create_symlink("c.h5", folder / "c.h5");
  const auto fault = check_checkpoint(folder.string(), cell);
  CHECK_FALSE(fault.lost);
  CHECK(fault.words.find("c.h5: cannot be read: ") != std::string::npos);
  std::filesystem::remove(folder / "c.h5");
  spill(folder / "c.h5", "no checkpoint");
  CHECK(check_checkpoint(folder.string(), cell).lost);
}

TEST_CASE("a record that a living process is writing is no problem") {
  Folder folder;
  const auto bytes = cell_bytes(sample_cell("qa", "memory_reader", "nvil", 1, 2, 0), 1);
  for (const auto& [name, problems] : {std::pair{this_process(), 0}, {name_of_the_dead(), 1}}) {
    const auto path = folder / (name + ".0.cells");
    spill(path, bytes + bytes.substr(0, bytes.size() / 2));
    CHECK(check_file(path).size() == static_cast<std::size_t>(problems));
  }
}

TEST_CASE("a file of cells that is removed, replaced or grows is read anew") {
  Folder folder;
  Sample sample(folder);
  spill(sample.path, sample.whole.substr(0, sample.ends[0] + 100));  // as a reader may find it during a write
  CellStore cells(folder.string());
  CHECK(cells.hashes().size() == 1);
  spill(folder / "grown", sample.whole.substr(sample.ends[0] + 100));
  append_to_file(sample.path, slurp(folder / "grown"));
  cells.refresh();
  CHECK(cells.hashes().size() == 3);
  const auto more = sample_cell("qa", "memory_reader", "nvil", 4, 2, 0);  // of another process, and it goes on
  const auto other = folder / "0-1-2.0.cells";
  for (int attempt : {1, 2}) {
    append_to_file(other, cell_bytes(more, attempt));
    cells.refresh();
    CHECK(cells.find(more.cell_hash)->cell.attempt == attempt);
  }
  std::filesystem::remove(other);
  write_file(sample.path, sample.whole.substr(sample.ends[0]));
  CHECK_FALSE(message<InputError>([&] { cells.read(sample.hashes[1]); }).empty());  // it is elsewhere now
  cells.refresh();
  CHECK(cells.hashes().size() == 2);
  CHECK(cells.read(sample.hashes[1]).cell_hash == sample.hashes[1]);
  std::filesystem::remove(sample.path);
  cells.refresh();
  CHECK(cells.hashes().empty());
}

TEST_CASE("a record of another cell that has taken a record's place, byte for byte, is not returned for it") {
  Folder folder;
  const auto path = folder / "0-1-1.0.cells";
  std::map<std::size_t, storage::CellRecord> by_size;
  for (int seed = 1; seed <= 60; ++seed) {
    const auto record = sample_cell("qa", "memory_reader", "nvil", seed, 2, 0);
    const auto bytes = cell_bytes(record, 1);
    const auto [other, first] = by_size.emplace(bytes.size(), record);
    if (first) continue;
    spill(path, bytes);
    CellStore cells(folder.string());
    CHECK(cells.read(record.cell_hash).cell_hash == record.cell_hash);
    write_file(path, cell_bytes(other->second, 1));
    CHECK(message<InputError>([&] { cells.read(record.cell_hash); }).find("has changed") != std::string::npos);
    cells.refresh();
    CHECK(cells.hashes() == std::vector{other->second.cell_hash});
    return;
  }
  FAIL("no two records of one size");
}

TEST_CASE("files of other kinds are named") {
  Folder folder;
  spill(folder / "text.h5", "not HDF5 at all");
  CHECK(check_file(folder / "text.h5").at(0).find("not an HDF5 file") != std::string::npos);
  spill(folder / "empty.h5", "");
  CHECK(check_file(folder / "empty.h5").at(0).find("is empty") != std::string::npos);
  save_checkpoint(folder / "other.h5", {});
  CHECK(message<InputError>([&] { read_archive(folder / "other.h5", "result"); }).find("is a checkpoint file") !=
        std::string::npos);
  spill(folder / "some.cells", Sample(folder).whole);
  CHECK(message<InputError>([&] { read_archive(folder / "some.cells", "result"); }).find("merge them first") !=
        std::string::npos);
}

TEST_CASE("a merged file that is truncated, has flipped bits or no seal is rejected") {
  Folder folder;
  write_merged(folder / "merged.h5",
               {sample_cell("qa", "memory_reader", "nvil", 1, 2, 0), sample_cell("qa", "memory_reader", "rloo", 1, 1, 0)});
  const auto whole = slurp(folder / "merged.h5");
  CHECK(check_file(folder / "merged.h5").empty());
  spill(folder / "bare.h5", whole.substr(0, whole.rfind("\nHARDGRAD-SEAL")));
  CHECK(check_file(folder / "bare.h5").at(0).find("seal is missing") != std::string::npos);
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < whole.size(); i += 211) {
    auto flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    spill(folder / "damaged.h5", flipped);
    accepted += check_file(folder / "damaged.h5").empty();
    spill(folder / "damaged.h5", whole.substr(0, i));
    accepted += check_file(folder / "damaged.h5").empty();
  }
  CHECK(accepted == 0);
}

}  // namespace hardgrad::testing::damage_test
