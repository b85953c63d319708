#include "experiments/sweeps/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "experiments/support/text.hpp"

namespace hardgrad::sweeps {

std::string clock_text(double seconds) {
  const auto s = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  return s < 3600 ? fmt::format("{}:{:02}", s / 60, s % 60) : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

Progress::Progress(std::size_t total, ProgressMode mode, std::function<void(const std::string&)> print,
                   std::function<std::optional<double>()> left, std::string of)
    : of_(std::move(of)), total_(total), print_(std::move(print)), remaining_(std::move(left)) {
  const char* term = std::getenv("TERM");
  const bool terminal = !print_ && isatty(STDERR_FILENO) && term && std::string_view(term) != "dumb";
  bar_ = (mode == ProgressMode::automatic || mode == ProgressMode::bar) && terminal;
  plain_ = mode == ProgressMode::plain || (mode == ProgressMode::automatic && !terminal);
  if (!print_)
    print_ = [](const std::string& text) {
      std::fputs(text.c_str(), stderr);
      std::fflush(stderr);
    };
  if (!bar_ && !plain_) return;
  ticker_ = std::jthread([this](std::stop_token stop) {  // updates the clock while a long cell runs
    std::mutex sleep;
    std::condition_variable_any wake;
    std::unique_lock lock(sleep);
    while (!wake.wait_for(lock, stop, std::chrono::seconds(1), [&] { return stop.stop_requested(); })) {
      std::lock_guard guard(mutex_);
      if (finished_) return;
      if (bar_) draw();
      if (plain_ && Clock::now() - last_line_ >= std::chrono::minutes(1)) {
        last_line_ = Clock::now();
        print_(status() + "\n");
      }
    }
  });
}

Progress::~Progress() { finish(); }

void Progress::expect(std::size_t total) {
  std::lock_guard guard(mutex_);
  total_ = total;
}

std::string Progress::status() const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  auto text = fmt::format("{}/{} {}", done_, total_, of_);
  if (failed_) text += fmt::format(", {} failed", failed_);
  if (done_ == total_) return text + fmt::format(", took {}", clock_text(elapsed));
  const auto left = remaining_ ? remaining_() : std::nullopt;
  return text + (left ? fmt::format(", about {} left", clock_text(*left)) : fmt::format(", {} so far", clock_text(elapsed)));
}

void Progress::advance(bool failed) {
  std::lock_guard guard(mutex_);
  ++done_;
  failed_ += failed;
  if (bar_) draw();
  const auto percent = total_ ? 100 * done_ / total_ : 100;
  if (plain_ && (percent >= told_percent_ + 5 || done_ == total_)) {
    told_percent_ = percent / 5 * 5;
    last_line_ = Clock::now();
    print_(status() + "\n");
  }
}

void Progress::say(const std::string& line) {
  std::lock_guard guard(mutex_);
  erase();
  print_(printable(line) + "\n");
  if (bar_ && !finished_) draw();
}

void Progress::finish() {
  {
    std::lock_guard guard(mutex_);
    if (finished_) return;
    finished_ = true;
    erase();
  }
  ticker_ = {};
}

void Progress::erase() {
  if (drawn_) print_("\r\033[K");
  drawn_ = false;
}

void Progress::draw() {
  winsize size{};
  const int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
  const auto text = status();
  const int width = std::clamp(columns - static_cast<int>(text.size()) - 5, 0, 40);
  const int filled = total_ ? static_cast<int>(width * done_ / total_) : width;
  print_(fmt::format("\r\033[K[{}{}] {}", std::string(filled, '#'), std::string(width - filled, '.'), text));
  drawn_ = true;
}

}  // namespace hardgrad::sweeps
