// Outside a terminal, progress is an occasional line.
#include "experiments/sweeps/progress.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace hardgrad::testing::progress_test {
using namespace sweeps;

namespace {
std::vector<std::string> lines_of(std::size_t cells, ProgressMode mode) {
  std::vector<std::string> lines;
  Progress progress(cells, mode, [&](const std::string& text) { lines.push_back(text); });
  for (std::size_t i = 0; i < cells; ++i) progress.advance(i == 3);
  progress.say("said");
  progress.finish();
  return lines;
}
}  // namespace

TEST_CASE("one line per twentieth of the cells") {
  const auto lines = lines_of(1000, ProgressMode::automatic);  // tests do not print to a terminal
  CHECK(lines.size() == 21);
  CHECK(lines.front().starts_with("50/1000 cells, 1 failed, "));
  CHECK(lines[19].starts_with("1000/1000 cells, 1 failed, took "));
  CHECK(lines.back() == "said\n");
  for (const auto& line : lines) CHECK(line.find('\r') == std::string::npos);
  CHECK(lines_of(7, ProgressMode::plain).size() == 8);
}

TEST_CASE("without progress, and with a bar outside a terminal, only warnings are printed") {
  for (const auto mode : {ProgressMode::none, ProgressMode::bar})
    CHECK(lines_of(100, mode) == std::vector<std::string>{"said\n"});
}

TEST_CASE("clock") {
  CHECK(clock_text(0) == "0:00");
  CHECK(clock_text(75.4) == "1:15");
  CHECK(clock_text(3675) == "1:01:15");
}

}  // namespace hardgrad::testing::progress_test
