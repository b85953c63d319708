// hardgrad watch: the curves of a running sweep.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>

#include "core/support/text.hpp"
#include "experiments/cli/candidates.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/support/text.hpp"
#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/progress.hpp"

namespace hardgrad::cli {
namespace {

struct WatchArguments {
  std::string path, by = "steps";
  std::vector<std::string> only;
  double every = 2;
  bool json = false;
};

double cost(const sweeps::CurvePoint& point, const std::string& by) {
  return by == "rows" ? point.rows : by == "cpu_seconds" ? point.cpu_seconds : point.step;
}

/// Cells that differ only in the seed, drawn as one curve.
struct Line {
  std::string label;
  std::vector<const sweeps::CellCurve*> cells;

  /// Mean over the seeds with a logged value.
  std::vector<std::pair<double, double>> points(const std::string& by) const {
    struct Sum {
      double x = 0, y = 0;
      int count = 0;
    };
    std::map<int, Sum> at;
    for (const auto* cell : cells)
      for (const auto& point : cell->training) {
        auto& sum = at[point.step];
        sum.x += cost(point, by);
        sum.y += point.loss;
        ++sum.count;
      }
    std::vector<std::pair<double, double>> points;
    points.reserve(at.size());
    for (const auto& [step, sum] : at) points.emplace_back(sum.x / sum.count, sum.y / sum.count);
    std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return points;
  }
};

/// Networks in the plan's order, and their lines.
std::vector<std::pair<std::string, std::vector<Line>>> networks(const std::vector<sweeps::CellCurve>& curves,
                                                                const std::vector<std::string>& only) {
  std::vector<std::pair<std::string, std::vector<Line>>> all;
  for (const auto& curve : curves) {
    sweeps::Cell cell;
    cell.axes = curve.axes;
    if (!sweeps::filter_keeps(only, cell)) continue;
    const auto network = curve.axes.at("task") + " / " + curve.axes.at("model");
    auto label = curve.axes.at("estimator");
    for (const auto& [name, value] : curve.axes)
      if (name != "task" && name != "model" && name != "estimator" && name != "seed")
        label += fmt::format(" {}={}", name, value);
    const auto find = [](auto& list, const std::string& name, auto key) {
      return std::find_if(list.begin(), list.end(), [&](const auto& item) { return key(item) == name; });
    };
    auto at = find(all, network, [](const auto& item) { return item.first; });
    if (at == all.end()) at = all.insert(at, {network, {}});
    auto line = find(at->second, label, [](const auto& item) { return item.label; });
    if (line == at->second.end()) line = at->second.insert(line, Line{label, {}});
    line->cells.push_back(&curve);
  }
  return all;
}

char mark_of(std::size_t i) {
  constexpr std::string_view marks = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  return i < marks.size() ? marks[i] : '#';
}

std::string state_of(const sweeps::CellCurve& curve) {
  if (curve.line.running) return "at work";
  return curve.line.state == sweeps::CellState::pending && curve.line.step ? "stopped" : to_string(curve.line.state);
}

// "expected_loss 0.31, accuracy 0.97": means over the cells that have them.
std::string evaluation_of(const Line& line) {
  std::map<std::string, std::pair<double, int>> sums[2];
  for (const auto* cell : line.cells)
    for (int k : {0, 1})
      for (const auto& [name, value] : k ? cell->metrics : cell->losses) {
        sums[k][name].first += value;
        ++sums[k][name].second;
      }
  std::string text;
  for (int k : {0, 1})
    if (!sums[k].empty()) {
      const auto& [name, sum] = *sums[k].begin();
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, short_number(sum.first / sum.second));
    }
  return text;
}

std::string headline(const sweeps::SweepStatus& status) {
  auto text = status.summary();
  if (status.seconds_left && *status.seconds_left > 0)
    text += fmt::format("; about {} of work left on one core", sweeps::clock_text(*status.seconds_left));
  return text;
}

std::string cut(const std::string& text, int width) {
  std::string out;
  int count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!continues_character(text[i]) && ++count > width) break;
    out += text[i];
  }
  return out;
}

/// A screen of the given size: as many networks as it holds.
std::vector<std::string> screen(const sweeps::SweepStatus& status, const std::vector<sweeps::CellCurve>& curves,
                                const WatchArguments& options, int width, int height) {
  constexpr int least = 6;  // smallest useful height of a plot
  std::vector<std::string> lines = {headline(status)};
  const auto all = networks(curves, options.only);
  std::size_t shown = 0;
  int needed = 2;
  while (shown < all.size() && needed + least + 2 + static_cast<int>(all[shown].second.size()) <= height)
    needed += least + 2 + static_cast<int>(all[shown++].second.size());
  shown = std::max<std::size_t>(shown, std::min<std::size_t>(1, all.size()));
  const int each = least + std::max(0, height - needed) / static_cast<int>(std::max<std::size_t>(1, shown));
  for (std::size_t k = 0; k < shown; ++k) {
    const auto& [network, members] = all[k];
    lines.push_back("");
    lines.push_back(fmt::format("{}: training loss by {}", network, options.by));
    std::vector<Series> series;
    for (std::size_t i = 0; i < members.size(); ++i) series.push_back({mark_of(i), members[i].points(options.by)});
    for (auto& line : plot(series, width, std::min(each, 24))) lines.push_back(std::move(line));
    for (std::size_t i = 0; i < members.size(); ++i) {
      const auto& member = members[i];
      std::map<std::string, int> states;
      int step = 0;
      for (const auto* cell : member.cells) {
        ++states[state_of(*cell)];
        step = std::max(step, cell->step);
      }
      std::string text;
      for (const auto& [state, count] : states) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, state);
      const auto loss = series[i].points.empty() ? "-" : short_number(series[i].points.back().second);
      const auto evaluation = evaluation_of(member);
      lines.push_back(fmt::format("{} {}: {}; step {}, loss {}{}{}", mark_of(i), member.label, text, step, loss,
                                  evaluation.empty() ? "" : "; evaluated: ", evaluation));
    }
  }
  if (shown < all.size())
    lines.push_back(fmt::format("{} more: use a higher window, or select with --only", counted(all.size() - shown, "network")));
  for (auto& line : lines) line = cut(printable(line), width);
  if (static_cast<int>(lines.size()) > height) lines.resize(static_cast<std::size_t>(height));
  return lines;
}

// A cell's label without the parts that all cells share.
std::string short_label(std::string label, const std::vector<sweeps::CellCurve>& curves) {
  if (curves.size() == 1) return label;
  for (const auto& [name, value] : curves.front().axes) {
    const auto shares = [&, &name = name, &value = value](const sweeps::CellCurve& curve) {
      const auto own = curve.axes.find(name);
      return own != curve.axes.end() && own->second == value;
    };
    const auto said = fmt::format("{}={} ", name, value);
    if (!std::all_of(curves.begin(), curves.end(), shares)) continue;
    if (const auto at = label.find(said); at != std::string::npos) label.erase(at, said.size());
  }
  return label;
}

void table(const sweeps::SweepStatus& status, const std::vector<sweeps::CellCurve>& curves, const WatchArguments& options) {
  put("{}\n", headline(status));
  std::vector<std::vector<std::string>> rows = {{"STATE", "STEP", "DONE", "ROWS", "CPU S", "LOSS", "EVALUATED", "CELL"}};
  for (const auto& curve : curves) {
    sweeps::Cell cell;
    cell.axes = curve.axes;
    if (!sweeps::filter_keeps(options.only, cell)) continue;
    const auto* last = curve.training.empty() ? nullptr : &curve.training.back();
    rows.push_back({state_of(curve), std::to_string(curve.step), curve.share ? fmt::format("{:.0f}%", 100 * *curve.share) : "-",
                    last ? short_number(last->rows) : "-", last ? short_number(last->cpu_seconds) : "-",
                    last ? short_number(last->loss) : "-",
                    curve.losses.empty() ? "-" : short_number(curve.losses.begin()->second),
                    printable(short_label(curve.line.label, curves))});
  }
  print_table(rows, "lrrrrrrl");
}

nlohmann::json to_json(const sweeps::SweepStatus& status, const std::vector<sweeps::CellCurve>& curves,
                       const WatchArguments& options) {
  auto cells = nlohmann::json::array();
  for (const auto& curve : curves) {
    sweeps::Cell cell;
    cell.axes = curve.axes;
    if (!sweeps::filter_keeps(options.only, cell)) continue;
    auto points = nlohmann::json::array();
    for (const auto& point : curve.training)
      points.push_back({{"step", point.step},
                        {"rows", number(point.rows)},
                        {"cpu_seconds", number(point.cpu_seconds)},
                        {"loss", number(point.loss)}});
    cells.push_back({{"hash", curve.line.hash},
                     {"axes", curve.axes},
                     {"state", state_of(curve)},
                     {"step", curve.step},
                     {"share", curve.share ? number(*curve.share) : nlohmann::json()},
                     {"ended_by", curve.ended_by},
                     {"training", points},
                     {"losses", numbers(curve.losses)},
                     {"metrics", numbers(curve.metrics)}});
  }
  return {{"name", status.name},
          {"hash", status.hash},
          {"running", status.running()},
          {"skipped", status.count(sweeps::CellState::skipped)},
          {"seconds_left", status.seconds_left ? number(*status.seconds_left) : nlohmann::json()},
          {"cells", cells}};
}

int watch(const WatchArguments& options) {
  sweeps::Curves curves(sweeps::SweepFolder{options.path});
  auto now = curves.look();
  if (options.json) {
    print_json(to_json(curves.status(), now, options));
    return 0;
  }
  const char* terminal = std::getenv("TERM");  // one without cursor movements gets the table, too
  if (!isatty(STDOUT_FILENO) || (terminal && std::string_view(terminal) == "dumb")) {
    table(curves.status(), now, options);
    return 0;
  }
  bool first = true;
  for (int idle = 0;; now = curves.look()) {
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    std::string text = first ? "\033[2J\033[H" : "\033[H";
    first = false;
    const auto lines = screen(curves.status(), now, options, known ? size.ws_col : 80, (known ? size.ws_row : 24) - 1);
    for (const auto& line : lines) text += line + "\033[K\n";
    put_text(text + "\033[J");
    // Briefly, no process runs between two cells.
    idle = curves.status().running() ? 0 : idle + 1;
    if (idle > 1 || std::fflush(stdout) != 0) return 0;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.every));
  }
}

}  // namespace

void add_watch(CLI::App& app, Action& action) {
  auto options = std::make_shared<WatchArguments>();
  Verb verb(app, "watch", "draw the curves of a sweep, redrawn until no process runs it");
  verb.add("folder", options->path, "the folder of a sweep").required();
  verb.add("--by", options->by, "steps, rows or cpu_seconds").one_of({"steps", "rows", "cpu_seconds"}).shows_default();
  verb.repeated("--only", options->only, "cells such as estimator=rloo* or seed=1; may be repeated")
      .completed_by(axis_patterns);
  verb.add("--every", options->every, "seconds between updates").from_to(0.1, 3600.0).shows_default();
  verb.flag("--json", options->json, "print JSON, once");
  verb.does(action, [options] { return watch(*options); });
}

}  // namespace hardgrad::cli
