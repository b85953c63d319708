#include "experiments/cli/common.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>

#include "core/support/error.hpp"
#include "core/support/text.hpp"
#include "experiments/cli/manual.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/trained.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/support/place.hpp"
#include "experiments/sweeps/config.hpp"

extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace hardgrad::cli {

nlohmann::json number(double value) { return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json(); }

void print_json(const nlohmann::json& json) { put("{}\n", json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)); }

void print_table(std::vector<std::vector<std::string>> rows, const std::string& alignment, std::size_t most) {
  std::vector<std::size_t> width;
  const auto length = [](const std::string& text) {  // of UTF-8, in characters
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), std::not_fn(continues_character)));
  };
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], length(row[i]));
  }
  if (most != std::string::npos) {
    std::size_t before = 0;
    for (std::size_t i = 0; i + 1 < width.size(); ++i) before += width[i] + 2;
    width.back() = 0;
    for (auto& row : rows)
      if (row.size() == width.size() && before < most) {
        row.back() = shortened(row.back(), most - before);
        width.back() = std::max(width.back(), length(row.back()));
      }
  }
  for (const auto& row : rows) {
    const bool heading = &row == &rows.front();
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(width[i] - length(row[i]), ' ');
      const bool right = i < alignment.size() && alignment[i] == 'r';
      line += (i ? "  " : "") + (right ? gap + row[i] : row[i] + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    put("{}\n", heading ? bold(line) : line);
  }
}

std::string short_number(double value) {
  return std::isnan(value) ? "-" : std::isinf(value) ? "infinite" : fmt::format("{:.3g}", value);
}

std::string size_text(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string counted(std::size_t n, const std::string& thing) { return fmt::format("{} {}{}", n, thing, n == 1 ? "" : "s"); }

CLI::Option* add_repeated(CLI::App& app, const std::string& name, std::vector<std::string>& into, const std::string& help) {
  return app.add_option(name, into, help)->allow_extra_args(false)->take_all();
}

void SceneOptions::add_options(CLI::App& app) {
  app.add_option("--task", task, "task, e.g. bits or 'translation[examples=1000]'");
  app.add_option("--model", model, "network; by default the task's own");
  seed_option = app.add_option("--seed", seed, "seed of data, parameters and noise (with --checkpoint: of the noise)")
                    ->check(CLI::NonNegativeNumber)
                    ->capture_default_str();
  app.add_option("--batch", batch, "examples: the first of the training split")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--precision", precision, "float or double")->check(CLI::IsMember({"float", "double"}))->capture_default_str();
  app.add_option("--checkpoint", checkpoint,
                 "take parameters from a checkpoint, and task and model as trained, or other data and settings that fit");
}

bool wants_posterior(const std::vector<std::string>& estimators) {
  return std::any_of(estimators.begin(), estimators.end(),
                     [](const auto& text) { return hardgrad::wants_posterior(Spec::parse(text)); });
}

template <class T>
Scene<T> open_scene(const SceneOptions& place, bool posterior) {
  Scene<T> scene;
  scene.data_seed = place.seed;
  if (!place.checkpoint.empty()) {
    const Trained trained({.checkpoint = place.checkpoint,
                           .task = place.task,
                           .model = place.model,
                           .read = {.split = Split::train, .examples = place.batch}});
    scene.task_spec = trained.task_spec;
    scene.model_spec = trained.model_spec;
    scene.task = trained.task;
    scene.model = trained.model<T>(posterior);
    scene.checkpoint = trained.checkpoint;
    scene.data_seed = trained.checkpoint.seed;
  } else {
    if (place.task.empty()) throw UsageError("--task is needed, e.g. --task bits; `hardgrad list tasks` names them");
    scene.task_spec = canonical_spec("task", place.task);
    scene.model_spec = canonical_spec(
        "model", place.model.empty() ? Tasks::instance().at(Spec::parse(place.task).name).default_model : place.model);
    scene.task = make_task(Spec::parse(scene.task_spec), Key(scene.data_seed) / "data");
    scene.model =
        make_model<T>(Spec::parse(scene.model_spec), scene.task->dimensions(), Key(scene.data_seed) / "init", posterior);
  }
  std::vector<int> first(std::min<std::size_t>(static_cast<std::size_t>(place.batch), scene.task->size(Split::train)));
  std::iota(first.begin(), first.end(), 0);
  scene.batch = scene.task->batch(Split::train, first);
  return scene;
}

template <class T>
std::unique_ptr<Estimator<T>> open_estimator(const Scene<T>& scene, const Spec& spec, Key init) {
  auto estimator = make_estimator<T>(spec, scene.model->structure(), init);
  if (scene.checkpoint && canonical_spec("estimator", spec.text) == canonical_spec("estimator", scene.checkpoint->estimator)) {
    restore_parameters(scene.checkpoint->own_parameters, estimator->own_parameters(), "the checkpoint's estimator");
    if (!scene.checkpoint->estimator_state.empty()) estimator->restore(scene.checkpoint->estimator_state);
  }
  return estimator;
}

template Scene<float> open_scene(const SceneOptions&, bool);
template Scene<double> open_scene(const SceneOptions&, bool);
template std::unique_ptr<Estimator<float>> open_estimator(const Scene<float>&, const Spec&, Key);
template std::unique_ptr<Estimator<double>> open_estimator(const Scene<double>&, const Spec&, Key);

std::string leftovers_text(const std::vector<Leftover>& leftovers) {
  if (leftovers.empty()) return {};
  double bytes = 0;
  for (const auto& leftover : leftovers) bytes += static_cast<double>(leftover.bytes);
  return fmt::format("{} that killed processes left half-written ({}): the next run removes {}",
                     counted(leftovers.size(), "file"), size_text(bytes), leftovers.size() == 1 ? "it" : "them");
}

void require_writable(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const auto refuse = [&](const std::string& why) { throw UsageError(fmt::format("{}: cannot be written: {}", path, why)); };
  if (place_of<UsageError>(folder) == Place::nothing) refuse(fmt::format("there is no folder {}", folder.string()));
  if (place_of<UsageError>(path) == Place::folder) refuse("it is a folder");
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse(std::strerror(errno));
  remove_leftovers(folder, std::filesystem::path(path).filename());
}

void note_jobs(int asked) {
  if (const int useful = useful_jobs(asked); asked > useful)
    complain(fmt::format("note: --jobs {}: {} at a time, more would not help on {}", asked, useful,
                         counted(static_cast<std::size_t>(useful), "core")));
}

void warn_about_kernel() {
  static bool warned = false;
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  if (warned || !forced || !*forced) return;
  warned = true;
  warn("OPENBLAS_CORETYPE={} forces the BLAS kernel {}; unset it unless you mean to, the processor may be faster", forced,
       blas_kernel());
}

void single_threaded_blas() {
  if (openblas_set_num_threads) openblas_set_num_threads(1);
}

}  // namespace hardgrad::cli
