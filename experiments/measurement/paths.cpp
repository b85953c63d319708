#include "experiments/measurement/paths.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "core/random/key.hpp"

namespace hardgrad::measurement {

void PathProbabilities::keep(Path path) {
  const auto place_of = [&](std::uint64_t hash) -> Path& {
    const auto mask = places_.size() - 1;
    auto i = hash & mask;
    while (places_[i].probability >= 0 && places_[i].hash != hash) i = (i + 1) & mask;
    return places_[i];
  };
  auto* place = &place_of(path.hash);
  if (place->probability < 0 && 2 * ++paths_ > places_.size()) {
    const auto before = std::exchange(places_, std::vector<Path>(2 * places_.size()));
    for (const auto& old : before)
      if (old.probability >= 0) place_of(old.hash) = old;
    place = &place_of(path.hash);
  }
  *place = {path.hash, std::max({0.0, place->probability, path.probability})};  // a path of probability NaN is kept, too
}

auto PathProbabilities::sorted() const -> std::vector<Path> {
  std::vector<Path> paths;
  std::copy_if(places_.begin(), places_.end(), std::back_inserter(paths),
               [](const Path& path) { return path.probability >= 0; });
  std::sort(paths.begin(), paths.end(), [](const Path& a, const Path& b) { return a.hash < b.hash; });
  return paths;
}

template <class T>
Visited::Visited(const Model<T>& model, const Batch& batch)
    : rounding_(64 * std::numeric_limits<T>::epsilon()), of_example_(batch.examples()) {
  const auto& sites = model.structure().sites;
  kept_ = std::all_of(sites.begin(), sites.end(), [](const auto& site) { return site.kind.options; });
  if (!kept_) return;
  for (double outcomes : model.outcomes(batch)) kept_ = kept_ && outcomes <= most;
}

template <class T>
void Visited::add(const Episode<T>& episode) {
  if (!kept_) return;
  struct Path {
    Key key;
    double log_p = 0;
    bool hard = true;
  };
  std::map<const Rows*, std::vector<Path>> paths;
  paths[episode.root().get()].resize(episode.root()->size());
  for (const auto& step : episode.steps()) {
    const auto& choice = step.choice;
    const auto& rows = *choice.rows;
    const std::size_t D = step.question.site.columns, subset_size = choice.subset_size();
    const bool known = choice.has_probability() && !choice.side_by_side;
    const auto log_p = known ? step.question.distribution->log_probability(choice).value() : MatrixView<const T>{};
    const auto& before = paths.at(rows.origin.get());
    auto& after = paths[&rows];
    for (std::size_t r = 0; r < rows.size(); ++r) {
      auto path = before[rows.parent[r]];
      path.hard = path.hard && known;
      for (std::size_t d = 0; d < D && path.hard; ++d) {
        for (int option : std::span(choice.picked()).subspan((r * D + d) * subset_size, subset_size)) {
          if (choice.relaxed() && option >= 0) path.hard = path.hard && choice.weights().value()(r * D + d, option) == 1;
          path.key = path.key / static_cast<std::uint64_t>(option);
        }
        path.log_p += static_cast<double>(log_p(r, d));
      }
      if (path.hard) {
        keep(rows.example[r], step.question.step, {path.key.value(), std::exp(path.log_p)});
        seen_ = true;
      }
      after.push_back(path);
    }
  }
}

void Visited::add(const Visited& other) {
  seen_ = seen_ || other.seen_;
  for (std::size_t b = 0; b < of_example_.size(); ++b)
    for (std::size_t choice = 0; choice < other.of_example_[b].size(); ++choice)
      for (const auto& path : other.of_example_[b][choice].sorted()) keep(b, choice, path);
}

void Visited::keep(std::size_t example, std::size_t choice, PathProbabilities::Path path) {
  auto& choices = of_example_[example];
  if (choices.size() <= choice) choices.resize(choice + 1);
  choices[choice].keep(path);
}

double Visited::missing() const {
  if (!kept_ || !seen_) return std::nan("");
  double mean = 0;
  for (const auto& choices : of_example_) {
    double most = 0;
    for (const auto& paths : choices) {
      const auto all = paths.sorted();  // so that sums round alike
      const double seen =
          std::accumulate(all.begin(), all.end(), 0.0, [](double x, const auto& path) { return x + path.probability; });
      if (!all.empty()) most = std::max(most, 1 - seen);
    }
    mean += most / static_cast<double>(of_example_.size());
  }
  return mean < rounding_ ? 0 : mean;
}

template Visited::Visited(const Model<float>&, const Batch&);
template Visited::Visited(const Model<double>&, const Batch&);
template void Visited::add(const Episode<float>&);
template void Visited::add(const Episode<double>&);

// A sample is a path that no later choice continues.
template <class T>
void Ratios::add(const Episode<T>& episode, double weight) {
  if (episode.terms().drawn_from != DrawnFrom::behaviour) return;
  std::map<const Rows*, std::vector<double>> log_ratio;
  std::map<const Rows*, std::vector<bool>> goes_on;
  log_ratio[episode.root().get()].resize(episode.root()->size());
  for (const auto& [question, choice] : episode.steps()) {
    const auto& rows = *choice.rows;
    if (!question.site.behaviour || !choice.has_probability()) return;
    const auto p = question.of(DrawnFrom::prior)->log_probability(choice).value();
    const auto q = question.of(DrawnFrom::behaviour)->log_probability(choice).value();
    const auto& before = log_ratio.at(rows.origin.get());
    auto& continued = goes_on[rows.origin.get()];
    continued.resize(before.size());
    auto& after = log_ratio[&rows];
    for (std::size_t r = 0; r < rows.size(); ++r) {
      double log = before[rows.parent[r]];
      for (std::size_t d = 0; d < p.cols; ++d) log += static_cast<double>(p(r, d)) - static_cast<double>(q(r, d));
      continued[rows.parent[r]] = true;
      after.push_back(log);
    }
  }
  std::vector<double> values;
  for (const auto& [rows, log] : log_ratio) {
    if (rows == episode.root().get()) continue;
    const auto continued = goes_on.find(rows);
    for (std::size_t r = 0; r < log.size(); ++r)
      if (continued == goes_on.end() || !continued->second[r]) values.push_back(std::exp(log[r]));
  }
  if (values.empty()) return;
  weights_ += weight;
  for (const double ratio : values) {
    const double share = weight / static_cast<double>(values.size());
    sum_ += share * ratio;
    squares_ += share * ratio * ratio;
    largest_ = std::max(largest_, ratio);
  }
}

void Ratios::join(const Ratios& other, double weight) {
  weights_ += weight * other.weights_;
  sum_ += weight * other.sum_;
  squares_ += weight * other.squares_;
  largest_ = std::max(largest_, other.largest_);
}

double Ratios::effective_share() const {
  return weights_ > 0 ? sum_ * sum_ / (weights_ * squares_) : std::numeric_limits<double>::quiet_NaN();
}

double Ratios::largest() const { return weights_ > 0 ? largest_ : std::numeric_limits<double>::quiet_NaN(); }

template void Ratios::add(const Episode<float>&, double);
template void Ratios::add(const Episode<double>&, double);

}  // namespace hardgrad::measurement
