#include "experiments/sweeps/curves.hpp"

#include <nlohmann/json.hpp>
#include <system_error>

#include "core/support/error.hpp"
#include "experiments/storage/unfinished.hpp"
#include "experiments/sweeps/journal.hpp"

namespace hardgrad::sweeps {

const training::TrainResult* Curves::read(const std::string& hash, bool done) {
  const auto path = folder_.unfinished(hash);
  std::error_code error;
  const auto time = done ? std::filesystem::file_time_type() : std::filesystem::last_write_time(path, error);
  if (error) return nullptr;
  auto& known = known_[hash];
  if (known.done != done || known.time != time) {
    try {
      known.result = done ? cells_.read(hash).result : storage::read_unfinished(path).so_far.result;
    } catch (const InputError&) {  // removed in the meantime, or damaged, which `check` reports
      known.result = {};
    }
    known.done = done;
    known.time = time;
  }
  return &known.result;
}

std::vector<CellCurve> Curves::look() {
  cells_.refresh();
  status_ = sweep_status(folder_, cells_);
  const auto plan = read_plan(folder_);
  std::vector<CellCurve> curves;
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < status_.cells.size(); ++i) {
    if (plan.at("cells").at(i).at("skip") != "") continue;
    CellCurve curve;
    curve.line = status_.cells[i];
    curve.axes = plan.at("cells").at(i).at("axes").get<AxisValues>();
    const auto& hash = curve.line.hash;
    const bool done = curve.line.state == CellState::ok;
    if (const auto* result = read(hash, done)) {
      for (const auto& point : result->log) curve.training.push_back({point.step, point.rows, point.cpu_seconds, point.loss});
      if (!result->evaluations.empty()) {
        curve.losses = result->evaluations.back().losses;
        curve.metrics = result->evaluations.back().metrics;
      }
      curve.ended_by = result->ended_by;
    }
    if (curve.line.step) curve.step = *curve.line.step;
    if (!curve.training.empty()) curve.step = std::max(curve.step, curve.training.back().step);
    if (done) curve.share = 1;
    place[hash] = curves.size();
    curves.push_back(std::move(curve));
  }
  for (const auto& event : Journal::read(folder_.journal())) {
    try {
      const auto it = place.find(event.value("cell", ""));
      if (it == place.end() || event.value("event", "") != "progress") continue;
      auto& curve = curves[it->second];
      if (!curve.line.running) continue;
      if (event.value("step", 0) < curve.step) continue;
      curve.step = event.value("step", 0);
      curve.share = event.value("share", 0.0);
      if (event.contains("losses")) curve.losses = event.at("losses").get<std::map<std::string, double>>();
      if (event.contains("metrics")) curve.metrics = event.at("metrics").get<std::map<std::string, double>>();
      if (event.contains("loss") && (curve.training.empty() || curve.training.back().step < event.value("logged", 0)))
        curve.training.push_back(
            {event.value("logged", 0), event.value("rows", 0.0), event.value("cpu_seconds", 0.0), event.value("loss", 0.0)});
    } catch (const nlohmann::json::exception&) {  // ignores a line of another format
    }
  }
  return curves;
}

}  // namespace hardgrad::sweeps
