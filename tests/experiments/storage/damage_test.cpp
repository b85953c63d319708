// Truncated files and files with flipped bits are always rejected, wherever the damage is.
#include <doctest/doctest.h>

#include "core/support/error.hpp"
#include "experiments/storage/check.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/storage/merge.hpp"
#include "folder.hpp"
#include "sample.hpp"

namespace hardgrad::testing::damage_test {
using namespace measurement;
using namespace storage;
using namespace tasks;
using namespace training;

TEST_CASE("a cell truncated anywhere is rejected by name") {
  Folder folder;
  write_cell(folder / "cell.h5", sample_cell("qa", "memory_reader", "nvil", 1, 2, 0));
  const auto whole = slurp(folder / "cell.h5");
  const auto refused = [&](std::size_t length) {
    spill(folder / "torn.h5", whole.substr(0, length));
    const auto words = message<InputError>([&] { read_cell(folder / "torn.h5"); });
    return words.find(folder / "torn.h5") == 0 && !check_cell(folder / "torn.h5").empty() &&
           !check_file(folder / "torn.h5").empty();
  };
  std::size_t accepted = 0;
  for (std::size_t length = 0; length + 200 < whole.size(); length += whole.size() / 150) accepted += !refused(length);
  for (std::size_t length = whole.size() - 200; length < whole.size(); ++length) {
    spill(folder / "torn.h5", whole.substr(0, length));
    accepted += message<InputError>([&] { read_cell(folder / "torn.h5"); }).empty();
  }
  CHECK(accepted == 0);
  CHECK_FALSE(refused(whole.size()));  // an intact file is accepted
}

TEST_CASE("a cell with one bit flipped anywhere is rejected") {
  Folder folder;
  write_cell(folder / "cell.h5", sample_cell("qa", "memory_reader", "nvil", 1, 2, 0));
  const auto whole = slurp(folder / "cell.h5");
  std::size_t accepted = 0, tried = 0;
  for (std::size_t i = 0; i < whole.size(); i += i + 300 < whole.size() ? 97 : 1) {
    auto flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (i % 8)));
    spill(folder / "flipped.h5", flipped);
    accepted += message<InputError>([&] { read_cell(folder / "flipped.h5"); }).empty();
    accepted += message<InputError>([&] { peek_cell(folder / "flipped.h5"); }).empty();
    ++tried;
  }
  CHECK(tried > 300);
  CHECK(accepted == 0);
}

TEST_CASE("zeroed pages, extended files and foreign files are rejected") {
  Folder folder;
  write_cell(folder / "cell.h5", sample_cell("qa", "memory_reader", "nvil", 1, 2, 0));
  const auto whole = slurp(folder / "cell.h5");
  auto zeroed = whole;
  std::fill_n(zeroed.begin() + 4096, 4096, '\0');
  spill(folder / "zeroed.h5", zeroed);
  CHECK(check_cell(folder / "zeroed.h5").find("checksum") != std::string::npos);
  spill(folder / "grown.h5", whole + "x");
  CHECK_FALSE(check_cell(folder / "grown.h5").empty());
  spill(folder / "text.h5", "not HDF5 at all");
  CHECK(check_cell(folder / "text.h5").find("not an HDF5 file") != std::string::npos);
  spill(folder / "empty.h5", "");
  CHECK(check_cell(folder / "empty.h5").find("is empty") != std::string::npos);
  save_checkpoint(folder / "other.h5", {});
  CHECK(check_cell(folder / "other.h5").find("checkpoint") != std::string::npos);
  CHECK(message<InputError>([&] { read_cell(folder / "other.h5"); }).find("is a checkpoint file") != std::string::npos);
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
