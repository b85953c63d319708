// Saves a running training and reports its progress at intervals.
#pragma once

#include <chrono>

#include "core/support/machine.hpp"
#include "experiments/sweeps/run_cell.hpp"

namespace hardgrad::sweeps {

template <class T>
class CheckpointWriter {
 public:
  /// The arguments must outlive it. `began`: thread_seconds() at the start of the cell.
  CheckpointWriter(const training::Training<T>& training, const training::TrainSettings& settings, const CellSettings& cell,
                   const CellHooks& hooks, const storage::CellRecord& record, double began, bool starting)
      : training_(training),
        settings_(settings),
        cell_(cell),
        hooks_(hooks),
        record_(record),
        began_(began),
        starting_(starting),
        last_step_(training.step) {}
  CheckpointWriter(const CheckpointWriter&) = delete;

  training::CheckpointHook hook() {
    return {[this] { return due(); }, [this] { act(); }};
  }

  /// Saves if there is anything to save.
  void save() {
    last_step_ = training_.step;
    saved_ = Clock::now();
    const auto& found = training_.progress.result;
    if (!saves() || (training_.step == 0 && found.measurements.empty() && found.evaluations.empty())) return;
    storage::PartialCell partial;
    partial.record = record_;
    partial.record.costs["cpu_seconds"] += thread_seconds() - began_;
    partial.starting = starting_;
    storage::snapshot(training_, partial);
    hooks_.save(partial);
  }

 private:
  using Clock = std::chrono::steady_clock;

  bool saves() const { return hooks_.save && (cell_.save_seconds > 0 || cell_.save_every > 0); }

  bool due() {
    const auto now = Clock::now();
    const auto over = [&](Clock::time_point since, double seconds) {
      return std::chrono::duration<double>(now - since).count() >= seconds;
    };
    save_ = saves() && ((cell_.save_every > 0 && training_.step - last_step_ >= cell_.save_every) ||
                        (cell_.save_seconds > 0 && over(saved_, cell_.save_seconds)));
    report_due_ = hooks_.progress && !starting_ && over(reported_, 1);
    return save_ || report_due_;
  }

  void act() {
    if (save_) save();
    if (report_due_) report();
  }

  void report() {
    reported_ = Clock::now();
    const auto& state = training_.progress;
    const auto& result = state.result;
    CellProgress progress{.step = training_.step,
                          .share = training::share_done(training_, settings_),
                          .seconds = result.seconds + state.measuring + state.evaluating,
                          .left = training::seconds_left(training_, settings_),
                          .logged = {},
                          .evaluated = {}};
    if (!result.log.empty()) progress.logged = result.log.back();
    if (!result.evaluations.empty()) progress.evaluated = result.evaluations.back();
    hooks_.progress(progress);
  }

  const training::Training<T>& training_;
  const training::TrainSettings& settings_;
  const CellSettings& cell_;
  const CellHooks& hooks_;
  const storage::CellRecord& record_;
  const double began_;
  const bool starting_;
  int last_step_;
  Clock::time_point saved_ = Clock::now(), reported_ = saved_;
  bool save_ = false, report_due_ = false;
};

}  // namespace hardgrad::sweeps
