#include "core/choice/handlers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "core/random/edges.hpp"

namespace hardgrad {
namespace {

/// edge[i] = the offset v at which (stratum + v) / K reaches the end of option i's interval, clipped to [0, 1].
template <class T>
std::vector<Edge> edges(const T* log_p, int options, int stratum, int samples) {
  std::vector<double> p(options);
  for (int i = 0; i < options; ++i) p[i] = std::exp(static_cast<double>(log_p[i]));
  auto edge = cumulated(p);
  edge.erase(edge.begin());
  for (Edge& e : edge)
    e = {std::clamp(samples * e.below - stratum, 0.0, 1.0), std::clamp(samples * e.above - (samples - 1 - stratum), 0.0, 1.0)};
  edge.back() = {1, 0};
  return edge;
}

/// Draws the interval between neighbouring edges that holds the offset shared by the rows; returns its lower end.
Edge draw_offset(std::span<const std::vector<Edge>> rows, Randomness& random, Draw where) {
  std::vector<Edge> cut{{0, 1}};
  for (const auto& edge : rows) cut.insert(cut.end(), edge.begin(), edge.end());
  std::sort(cut.begin(), cut.end());
  cut.erase(std::unique(cut.begin(), cut.end()), cut.end());
  std::vector<double> share(cut.size() - 1);
  for (std::size_t i = 0; i < share.size(); ++i) share[i] = length(cut[i], cut[i + 1]);
  return cut[share.size() == 1 ? 0 : random.categorical(share, where)];
}

}  // namespace

/// [K] a random permutation of the strata.
template <class T>
std::vector<int> StratifiedHandler<T>::deal(std::uint32_t example, std::uint32_t step, std::uint32_t column) {
  std::vector<int> left(samples_), dealt;
  std::iota(left.begin(), left.end(), 0);
  while (!left.empty()) {
    const std::vector<double> even(left.size(), 1.0 / static_cast<double>(left.size()));
    const Draw where{
        .example = example, .replica = static_cast<std::uint32_t>(dealt.size()), .step = step, .index = 1, .column = column};
    const int which = left.size() == 1 ? 0 : random_.categorical(even, where);
    dealt.push_back(left[which]);
    left.erase(left.begin() + which);
  }
  return dealt;
}

/// For choices that are numbers, the offsets are drawn as uniform numbers.
template <class T>
Choice<T> StratifiedHandler<T>::numbers(Tape<T>& tape, const Question<T>& question, const RowsPtr& rows) {
  const auto step = static_cast<std::uint32_t>(question.step);
  const std::size_t D = question.site.columns;
  std::vector<double> u(rows->size() * D);
  for (std::size_t set = 0; set < u.size() / samples_; ++set) {
    const std::size_t first = set / D * samples_, d = set % D;
    const auto example = id_[rows->example[first]];
    const auto column = static_cast<std::uint32_t>(d);
    const auto stratum = deal(example, step, column);
    double v = 0;
    for (int k = 0; k < samples_; ++k) {
      if (offsets_ == Offsets::own || k == 0)
        v = random_.uniform({.example = example, .replica = static_cast<std::uint32_t>(k), .step = step, .column = column});
      u[(first + k) * D + d] = (stratum[k] + v) / samples_;
    }
  }
  return question.distribution->at_quantiles(tape, rows, u);
}

template <class T>
Choice<T> StratifiedHandler<T>::choose(Tape<T>& tape, const Question<T>& question) {
  auto rows = fan_out(question, question.site.rows->is_root() ? samples_ : 1);
  if (!question.has_options()) return numbers(tape, question, rows);
  const auto& categories = question.categories();
  const auto log_p = categories.log_p().value();
  const auto step = static_cast<std::uint32_t>(question.step);
  const int D = question.site.columns;
  std::vector<int> option(rows->size() * D);
  for (std::size_t set = 0; set < option.size() / samples_; ++set) {  // the samples of an example, in one column
    const std::size_t first = set / D * samples_, d = set % D;
    const auto choice = [&](int k) { return rows->parent[first + k] * D + static_cast<int>(d); };
    const auto options = [&](int k) { return categories.options()[choice(k)]; };
    bool chooses = false;
    for (int k = 0; k < samples_; ++k) chooses |= options(k) > 1;
    if (!chooses) continue;
    const auto example = id_[rows->example[first]];
    const auto column = static_cast<std::uint32_t>(d);
    const auto stratum = deal(example, step, column);
    std::vector<std::vector<Edge>> edge;
    edge.reserve(samples_);
    for (int k = 0; k < samples_; ++k) edge.push_back(edges(log_p.row(choice(k)), options(k), stratum[k], samples_));
    Edge v;
    for (int k = 0; k < samples_; ++k) {
      const Draw where{.example = example, .replica = static_cast<std::uint32_t>(k), .step = step, .column = column};
      if (offsets_ == Offsets::own)
        v = draw_offset(std::span(edge).subspan(k, 1), random_, where);
      else if (k == 0)
        v = draw_offset(edge, random_, where);
      option[(first + k) * D + d] = static_cast<int>(std::upper_bound(edge[k].begin(), edge[k].end(), v) - edge[k].begin());
    }
  }
  return {rows, ChosenOptions{std::move(option)}};
}

template class StratifiedHandler<float>;
template class StratifiedHandler<double>;

}  // namespace hardgrad
