// Writes sample files of every kind to a folder, for the Python tests.
#include <cstdio>
#include <filesystem>

#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/cell.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/storage/gradient.hpp"
#include "experiments/storage/result_files.hpp"
#include "sample.hpp"

int main(int count, char** arguments) {
  using namespace hardgrad;
  using namespace hardgrad::storage;
  if (count != 2) return std::fprintf(stderr, "usage: write_sample FOLDER\n"), 2;
  const std::filesystem::path folder = arguments[1];
  std::filesystem::create_directories(folder);
  write_merged(folder / "result.h5", testing::sample_sweep());
  write_merged(folder / "one_seed.h5", testing::sample_sweep(1));
  write_file(folder / "some.cells", cell_bytes(testing::sample_cell("qa", "memory_reader", "rloo[samples=4]", 7, 0.6, 0), 1));
  auto untrained = testing::sample_sweep(1);
  for (auto& record : untrained) record.result = {}, record.status = CellStatus::failed;
  write_merged(folder / "all_failed.h5", untrained);

  GradientDump<float> dump;
  dump.parameters = {{"encoder.weight", shaped<float>({2, 2}, {1, 2, 3, 4})}, {"encoder.bias", full<float>({2}, 0.5f)}};
  dump.gradient = {{"encoder.weight", shaped<float>({2, 2}, {4, 3, 2, 1})}, {"encoder.bias", full<float>({2}, 0.25f)}};
  dump.batch.id = {11, 12};
  dump.batch.integers["source"] = shaped<int>({2, 3}, {1, 2, 3, 4, 5, 0});
  dump.words["source"] = shaped<std::string>({2, 3}, {"the", "grüne", "n1", "the", "n2", ""});
  dump.batch.reals["target"] = shaped<double>({2, 1}, {0.5, 1.5});
  dump.choices = shaped<int>({2, 4}, {0, 1, 2, 0, 1, 1, 0, -1});
  dump.log_prob = full<float>({2, 4}, -0.7f);
  dump.loss = full<float>({2, 4}, 1.25f);
  dump.logits = full<float>({2, 4, 3}, 0.1f);
  dump.row_example = {0, 0, 1, 1};
  dump.task = "qa", dump.model = "memory_reader", dump.estimator = "rloo[samples=2]";
  dump.seed = 0xfedcba9876543210u;
  dump.surrogate = 1.5;
  write_gradient(folder / "gradient.h5", dump);

  Checkpoint checkpoint;
  checkpoint.parameters = {{"encoder.weight", shaped<double>({2, 2}, {1, 2, 3, 4})}};
  checkpoint.optimizer = {1, 2, 3};
  checkpoint.step = 300;
  checkpoint.precision = Precision::float32;
  save_checkpoint(folder / "checkpoint.h5", checkpoint);
}
