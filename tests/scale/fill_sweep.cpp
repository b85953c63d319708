// Fills a planned sweep with records: `fill_sweep FOLDER FILES` gives every cell without a record a copy of a finished one of its
// estimator, in FILES files, as that many processes would write. Each number is moved a little, so that a merged file compresses no
// better than a real one. Merging so large a sweep can then be measured without running it.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/storage/cell.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/storage/results.hpp"
#include "experiments/sweeps/folder.hpp"

namespace {

using namespace hardgrad;

class Jitter {
 public:
  void move(double& x) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    if (x != std::floor(x)) x *= 1 + static_cast<double>(state_ >> 11) * 0x1p-60;
  }

 private:
  std::uint64_t state_ = 1;
};

void move(storage::CellRecord& record, Jitter& noise) {
  auto& result = record.result;
  noise.move(result.seconds);
  for (auto& [name, cost] : record.costs) noise.move(cost);
  for (auto& point : result.log)
    for (auto* x : {&point.loss, &point.seconds, &point.gradient_norm, &point.cpu_seconds}) noise.move(*x);
  for (auto& point : result.evaluations)
    for (auto* map : {&point.losses, &point.metrics})
      for (auto& [name, x] : *map) noise.move(x);
  for (auto& point : result.measurements) {
    auto& m = point.measurement;
    for (const auto& row : measurement::quantities())
      if (row.measured) noise.move(m.*row.measured);
    for (auto* map : {&m.entropy_by_site, &m.bias_against, &m.variance_by_group, &m.variance_by_site})
      for (auto& [name, x] : *map) noise.move(x);
    for (auto* list : {&m.mean, &m.variances})
      for (auto& x : *list) noise.move(x);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return std::fprintf(stderr, "usage: fill_sweep FOLDER FILES\n"), 2;
  const sweeps::SweepFolder folder{arguments[1]};
  const auto files = std::stoul(arguments[2]);
  const storage::CellStore cells(folder.cells());
  std::map<std::string, storage::CellRecord> finished;  // by estimator
  for (const auto& hash : cells.hashes()) {
    auto record = cells.read(hash);
    finished.try_emplace(record.axes.at("estimator"), std::move(record));
  }
  Jitter noise;
  std::vector<std::string> bytes(files);
  std::size_t number = 0, written = 0;
  const auto flush = [&](std::size_t file) {
    storage::append_to_file(
        fmt::format("{}/{}.{:016x}{}", folder.cells(), storage::this_process(), file, storage::cells_ending), bytes[file]);
    bytes[file].clear();
  };
  sweeps::read_plan(folder, [&](const auto&, const nlohmann::json& cell) {
    const auto file = number++ % files;
    if (cells.find(cell.at("hash"))) return;
    auto record = finished.at(cell.at("axes").at("estimator"));
    record.axes = cell.at("axes");
    record.cell_hash = cell.at("hash");
    move(record, noise);
    bytes[file] += storage::cell_bytes(record, 1);
    ++written;
    if (bytes[file].size() > 1 << 19) flush(file);
  });
  for (std::size_t file = 0; file < files; ++file) flush(file);
  std::printf("%zu records in %zu files\n", written, files);
}
