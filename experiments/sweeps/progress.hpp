// Progress of long work on stderr: a bar on a terminal, occasional lines elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/support/named.hpp"

namespace hardgrad::sweeps {

/// `bar`: a bar on a terminal, nothing elsewhere.
enum class ProgressMode { automatic, plain, bar, none };
/// Those that a run can be asked for.
inline constexpr Named<ProgressMode> progress_modes[] = {
    {"auto", ProgressMode::automatic}, {"plain", ProgressMode::plain}, {"none", ProgressMode::none}};

class Progress {
 public:
  /// `total` items with the name `of`. `print` is for tests; by default lines go to stderr. `left`: the remaining seconds, if
  /// known; called from any thread, for each line.
  Progress(std::size_t total, ProgressMode mode, std::function<void(const std::string&)> print = {},
           std::function<std::optional<double>()> left = {}, std::string of = "cells");
  ~Progress();
  /// Updates the total number.
  void expect(std::size_t total);
  /// Counts one finished item.
  void advance(bool failed);
  /// Writes a separate line in every mode: failures are always reported.
  void say(const std::string& line);
  /// Removes the bar and stops drawing.
  void finish();

  /// "12/40 cells, 1 failed, about 0:35 left"
  std::string status() const;

 private:
  using Clock = std::chrono::steady_clock;
  void draw();
  void erase();
  std::string of_;
  std::size_t total_;
  std::size_t done_ = 0, failed_ = 0, told_percent_ = 0;
  bool bar_ = false, plain_ = false, drawn_ = false, finished_ = false;
  std::function<void(const std::string&)> print_;
  std::function<std::optional<double>()> remaining_;
  Clock::time_point start_ = Clock::now(), last_line_ = Clock::now();
  std::mutex mutex_;
  std::jthread ticker_;
};

/// 75 -> "1:15", 3675 -> "1:01:15"
std::string clock_text(double seconds);

}  // namespace hardgrad::sweeps
