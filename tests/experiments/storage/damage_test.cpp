// Truncated files and files with flipped bits are always recognised, wherever the damage is.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "core/support/error.hpp"
#include "experiments/storage/cell_store.hpp"
#include "experiments/storage/check.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/storage/merge.hpp"
#include "experiments/storage/process.hpp"
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
      if (const auto found = cells.find(hash); found && found->sound) {
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
  const auto mended = [&](const std::string& bytes) {
    sample.intact(folder.string(), bytes);
    CellStore cells(folder.string());
    const auto torn = cells.torn().size(), removed = cells.mend();
    return std::tuple(torn, removed, slurp(dead));
  };
  const auto& whole = sample.whole;
  const auto two = whole.substr(0, sample.ends[1]);
  CHECK(mended(whole) == std::tuple(0, 0, whole));
  CHECK(mended(whole.substr(0, whole.size() - 5)) == std::tuple(1, 1, two));
  CHECK(mended(two + std::string(4096, '\0')) == std::tuple(1, 1, two));  // a power cut may leave a length without bytes
  auto flipped = whole;
  flipped[sample.ends[1] + 500] ^= 1;
  CHECK(mended(flipped) == std::tuple(0, 0, two));
  flipped = whole;
  flipped[sample.ends[0] + 20] ^= 1;
  CHECK(mended(flipped) == std::tuple(0, 0, whole.substr(0, sample.ends[0]) + whole.substr(sample.ends[1])));
  mended("HARDGRAD");
  CHECK_FALSE(std::filesystem::exists(dead));

  // A living process, and for an hour one of an unknown place, may still write.
  for (const auto& name : {this_process(), std::string("far-1-1")}) {
    sample.path = folder / (name + ".0.cells");
    sample.intact(folder.string(), whole.substr(0, whole.size() - 5));
    CellStore cells(folder.string());
    CHECK(cells.torn().empty());
    CHECK(cells.mend() == 0);
    CHECK(slurp(sample.path).size() == whole.size() - 5);
    std::filesystem::remove(sample.path);
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
