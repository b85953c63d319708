#include "experiments/measurement/ratios.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace hardgrad::measurement {

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
  std::vector<double> found;
  for (const auto& [rows, log] : log_ratio) {
    if (rows == episode.root().get()) continue;
    const auto continued = goes_on.find(rows);
    for (std::size_t r = 0; r < log.size(); ++r)
      if (continued == goes_on.end() || !continued->second[r]) found.push_back(std::exp(log[r]));
  }
  if (found.empty()) return;
  weights_ += weight;
  for (const double ratio : found) {
    const double share = weight / static_cast<double>(found.size());
    sum_ += share * ratio;
    squares_ += share * ratio * ratio;
    largest_ = std::max(largest_, ratio);
  }
}

void Ratios::join(const Ratios& other) {
  weights_ += other.weights_;
  sum_ += other.sum_;
  squares_ += other.squares_;
  largest_ = std::max(largest_, other.largest_);
}

double Ratios::effective_share() const {
  return weights_ > 0 ? sum_ * sum_ / (weights_ * squares_) : std::numeric_limits<double>::quiet_NaN();
}

double Ratios::largest() const { return weights_ > 0 ? largest_ : std::numeric_limits<double>::quiet_NaN(); }

template void Ratios::add(const Episode<float>&, double);
template void Ratios::add(const Episode<double>&, double);

}  // namespace hardgrad::measurement
