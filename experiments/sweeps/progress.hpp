// How long work shows that it moves: a bar on a terminal, a line now and then elsewhere, always on stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace hardgrad::sweeps {

/// `bar`: one on a terminal, nothing elsewhere.
enum class ProgressMode { automatic, plain, bar, none };

class Progress {
 public:
  /// `total` of what `of` names, to be done. `print` is for tests; by default lines go to stderr. `left`: the seconds that they
  /// will take still, if that is known; asked from any thread, whenever a line is written.
  Progress(std::size_t total, ProgressMode mode, std::function<void(const std::string&)> print = {},
           std::function<std::optional<double>()> left = {}, std::string of = "cells");
  ~Progress();
  /// How many there are in all, where that has become known better.
  void expect(std::size_t total);
  /// One more is over.
  void advance(bool failed);
  /// A line of its own, whatever the mode: failures are always told.
  void say(const std::string& line);
  /// Removes the bar; nothing is drawn after.
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
  std::function<std::optional<double>()> left_;
  Clock::time_point start_ = Clock::now(), told_ = Clock::now();
  std::mutex mutex_;
  std::jthread ticker_;
};

/// 75 -> "1:15", 3675 -> "1:01:15"
std::string clock_text(double seconds);

}  // namespace hardgrad::sweeps
