// What several verbs share: JSON, tables, and options spelled alike.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/registry/settings.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::cli {

/// A number; null if it is not finite, which JSON cannot say.
nlohmann::json number(double value);
/// `{"name","type","default","range","help"}` of each.
nlohmann::json to_json(const std::vector<ParameterInfo>& parameters);
nlohmann::json to_json(const Value& value);
/// Pure JSON on stdout.
void print_json(const nlohmann::json& json);

/// Aligned columns; the first row is the heading. Columns marked 'r' in `alignment` are flush right. The last column is
/// shortened so that no line is wider than `most` characters.
void print_table(std::vector<std::vector<std::string>> rows, const std::string& alignment,
                 std::size_t most = std::string::npos);
/// "1.23e-05", "-" for NaN
std::string short_number(double value);
/// "1:05", "3.2 GB"
std::string size_text(double bytes);

/// `n things`, `1 thing`
std::string counted(std::size_t n, const std::string& thing);

/// An option that may be given several times, one value each.
CLI::Option* add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& into, const std::string& help);

/// Where a gradient is taken: a task, a network and a batch, from specs or from a checkpoint (on other data, if a task is
/// given).
struct SceneOptions {
  std::string task, model, checkpoint, precision = "float";
  std::uint64_t seed = 0;
  int batch = 8;

  void add_options(CLI::App& app);
  CLI::Option* seed_option = nullptr;
};

/// The scene itself.
template <class T>
struct Scene {
  std::string task_spec, model_spec;  ///< canonical
  std::shared_ptr<const Task> task;
  std::unique_ptr<Model<T>> model;
  Batch batch;
  std::optional<Checkpoint> checkpoint;
  std::uint64_t data_seed = 0;  ///< data are made from; the checkpoint's own where there is one
};
/// `posterior`: build the network with a learned posterior (with a checkpoint: only if it holds one).
template <class T>
Scene<T> open_scene(const SceneOptions& options, bool posterior);
/// Any of the named estimators proposes from a posterior.
bool wants_posterior(const std::vector<std::string>& estimators);
/// An estimator for the scene; takes up its learned state if the checkpoint was trained with the same spec.
template <class T>
std::unique_ptr<Estimator<T>> open_estimator(const Scene<T>& scene, const Spec& spec, Key init);

/// Of files that killed processes left half-written: how many and how large, and what removes them; empty if there are none.
std::string leftovers_text(const std::vector<Leftover>& leftovers);

/// UsageError now, before hours of work, if a file could not be written there later. What killed processes left of earlier
/// attempts is removed.
void require_writable(const std::string& path);
/// Says so where more jobs are asked for than help.
void note_jobs(int asked);
/// Says so, once, where the environment forces a BLAS kernel.
void warn_about_kernel();
/// BLAS on one thread: TBB shares out the work.
void single_threaded_blas();

}  // namespace hardgrad::cli
