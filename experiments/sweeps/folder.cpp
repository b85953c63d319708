#include "experiments/sweeps/folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/support/error.hpp"
#include "core/support/text.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/partial_cell.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/support/text.hpp"
#include "experiments/sweeps/cell_leases.hpp"
#include "experiments/sweeps/remaining_work.hpp"

namespace hardgrad::sweeps {

Journal::Journal(const std::string& path) : path_(path) {
  reject_control_characters<UsageError>(path);
  file_ = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) throw UsageError(fmt::format("{}: cannot be written: {}", path, system_words(errno)));
  const auto size = ::lseek(file_, 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(file_, &last, 1, size - 1) == 1 && last != '\n' && ::write(file_, "\n", 1) != 1)
    throw UsageError(fmt::format("{}: cannot be written: {}", path, system_words(errno)));
}

Journal::~Journal() {
  if (file_ >= 0) ::close(file_);
}

void Journal::append(nlohmann::json event) {
  event["time"] = storage::timestamp();
  const auto line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  // One write, so that lines of several processes stay intact. After a partial write, writing the rest reports the error.
  for (std::size_t done = 0; done < line.size();) {
    const auto put = ::write(file_, line.data() + done, line.size() - done);
    if (put < 0) throw UsageError(fmt::format("{}: cannot be written: {}", path_, system_words(errno)));
    done += static_cast<std::size_t>(put);
  }
}

void Journal::each(const std::string& path, const std::function<void(const nlohmann::json&)>& f) {
  if (path_kind(path) == PathKind::missing) return;
  storage::each_line(path, [&](std::string_view line) {
    if (const auto event = nlohmann::json::parse(line, nullptr, false); event.is_object()) f(event);
  });
}

std::vector<nlohmann::json> Journal::read(const std::string& path) {
  std::vector<nlohmann::json> events;
  each(path, [&](const nlohmann::json& event) { events.push_back(event); });
  return events;
}

std::string to_string(CellState state) {
  switch (state) {
    case CellState::pending: return "pending";
    case CellState::ok: return "ok";
    case CellState::failed: return "failed";
    case CellState::skipped: return "skipped";
    case CellState::damaged: return "damaged";
    case CellState::unreadable: return "unreadable";
  }
  throw Bug("unknown cell state");
}

std::vector<storage::StaleTempFile> stale_files(const SweepFolder& folder, const storage::CellStore& cells) {
  auto found = cells.torn();
  for (const auto& more : {storage::stale_files(folder.path), storage::stale_files(folder.cells())})
    found.insert(found.end(), more.begin(), more.end());
  std::erase_if(found, [](const auto& stale) { return !stale.abandoned; });
  return found;
}

CellState cell_state(const storage::CellStore& cells, const std::string& hash, bool with_checkpoint,
                     storage::CellStore::Trial trial) {
  const auto entry = cells.find(hash);
  if (!entry) return CellState::pending;
  if (!entry->checksum_ok) return CellState::damaged;
  if (!cells.unreadable(hash, trial).empty()) return CellState::unreadable;
  if (with_checkpoint && storage::check_checkpoint(cells.folder(), entry->cell).lost) return CellState::damaged;
  switch (entry->cell.status) {
    case storage::CellStatus::ok: return CellState::ok;
    case storage::CellStatus::failed: return CellState::failed;
    case storage::CellStatus::skipped: return CellState::skipped;
  }
  throw Bug("unknown cell status");
}

std::optional<int> partial_step(const SweepFolder& folder, const std::string& hash) {
  const auto path = folder.partial(hash);
  try {
    if (path_kind(path) == PathKind::missing) return {};
    const auto summary = storage::peek_partial_cell(path);
    return summary.cell_hash == hash ? std::optional(summary.step) : std::nullopt;
  } catch (const InputError&) {  // `check` names the damage
    return {};
  }
}

bool is_done(CellState state, const Cell& cell) {
  // A failed trial is done: its setting is excluded.
  return state == CellState::ok || (state == CellState::skipped && !cell.skip.empty()) ||
         (state == CellState::failed && cell.round > 0);
}

std::size_t SweepStatus::count(CellState state) const {
  return std::count_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.state == state; });
}
std::size_t SweepStatus::running() const {
  return std::count_if(cells.begin(), cells.end(), [](const auto& cell) { return cell.running; });
}

std::size_t SweepStatus::failed_trials() const {
  return std::count_if(cells.begin(), cells.end(),
                       [](const auto& cell) { return cell.trial && cell.state == CellState::failed; });
}

std::string SweepStatus::summary() const {
  const auto trials = failed_trials(), damaged = count(CellState::damaged), unreadable = count(CellState::unreadable);
  return fmt::format("{}: {}: {} ok, {} skipped, {} failed, {} pending, {} at work{}{}{}", printable(name),
                     counted(cells.size(), "cell"), count(CellState::ok), count(CellState::skipped),
                     count(CellState::failed) - trials, count(CellState::pending), running(),
                     damaged ? fmt::format(", {} damaged (will be run again)", damaged) : "",
                     unreadable ? fmt::format(", {} unreadable (will be run again)", unreadable) : "",
                     trials ? fmt::format("; {} failed, never chosen", counted(trials, "trial")) : "");
}

namespace {

struct History {
  std::map<std::string, std::string> reasons;  // cell -> reason of its failure
  JournalSeconds seconds;
  std::map<std::string, std::pair<double, double>> progress;  // of running cells: last elapsed and remaining seconds
};

History history_of(const SweepFolder& folder) {
  History history;
  Journal::each(folder.journal(), [&](const nlohmann::json& event) {
    try {
      const auto kind = event.value("event", "");
      const auto cell = event.value("cell", "");
      if (kind == "start") history.progress.erase(cell);
      if (kind == "tried") history.seconds.tried[cell] = event.value("seconds", 0.0);
      if (kind == "progress" && event.contains("left"))
        history.progress[cell] = {event.value("seconds", 0.0), event.value("left", 0.0)};
      if (kind != "end" && kind != "interrupted") return;
      history.reasons[cell] = event.value("reason", "");
      if (event.value("status", "") == "ok") history.seconds.took[cell] = event.value("seconds", 0.0);
    } catch (const nlohmann::json::exception&) {  // ignores a line of another format
    }
  });
  return history;
}

}  // namespace

JournalSeconds journal_seconds(const SweepFolder& folder) { return history_of(folder).seconds; }

SweepStatus sweep_status(const SweepFolder& folder, const storage::CellStore& cells) {
  auto history = history_of(folder);
  const auto leases = valid_leases(folder.cells());
  SweepStatus status;
  RemainingWork remaining;
  const auto plan = read_plan(folder, [&](const auto&, const nlohmann::json& cell) {
    CellStatusLine line;
    line.hash = cell.at("hash");
    Cell named;
    named.axes = cell.at("axes").get<AxisValues>();
    named.round = cell.value("round", std::size_t{0});
    named.share = cell.value("share", 1.0);
    named.skip = cell.at("skip").get<std::string>();
    line.trial = named.round > 0;
    line.label = named.label();
    line.state = cell_state(cells, line.hash, true, storage::CellStore::Trial::form);
    line.reason = line.state == CellState::failed ? history.reasons[line.hash] : cell.at("skip").get<std::string>();
    line.running = leases.contains(line.hash);
    const auto kind = kind_of(named.axes);
    if (const auto took = history.seconds.took.find(line.hash); took != history.seconds.took.end())
      remaining.took(kind, took->second, named.share);
    if (const auto tried = history.seconds.tried.find(line.hash); tried != history.seconds.tried.end())
      remaining.tried(kind, tried->second);
    if (!is_done(line.state, named) && named.skip.empty()) {
      remaining.expect(line.hash, kind, named.share);
      if (const auto said = history.progress.find(line.hash); line.running && said != history.progress.end())
        remaining.at_work(line.hash, said->second.first, said->second.second, 0);
      line.step = partial_step(folder, line.hash);
    }
    status.cells.push_back(std::move(line));
  });
  status.name = plan.at("name");
  status.hash = plan.at("hash");
  status.to_come = plan.value("to_come", std::size_t{0});
  status.damage = cells.damage();
  remaining.to_come(plan.value("work_to_come", Durations::WorkByKind{}));
  status.seconds_left = remaining.one_by_one(0);
  return status;
}

const training::TrainResult* Curves::read(const std::string& hash, bool done) {
  const auto path = folder_.partial(hash);
  std::error_code error;
  const auto time = done ? std::filesystem::file_time_type() : std::filesystem::last_write_time(path, error);
  if (error) return nullptr;
  auto& known = known_[hash];
  if (known.done != done || known.time != time) {
    try {
      known.result = done ? cells_.read(hash).result : storage::read_partial_cell(path).progress.result;
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
