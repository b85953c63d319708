#include "experiments/measurement/noise_enumerator.hpp"

#include <algorithm>
#include <numeric>

#include "core/random/randomness.hpp"
#include "core/support/error.hpp"
#include "core/support/log_gamma.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/kinks.hpp"
#include "experiments/measurement/quadrature.hpp"

namespace hardgrad::measurement {

int NoiseEnumerator::possible(const std::vector<double>& probabilities, int from) {
  for (int i = from; i < static_cast<int>(probabilities.size()); ++i)
    if (probabilities[i] > 0) return i;
  return -1;
}

int NoiseEnumerator::first_possible(const std::vector<double>& probabilities, int from) {
  if (const int first = possible(probabilities, from); first >= 0) return first;
  throw NotFinite("the probabilities of a draw are not finite numbers");
}

void NoiseEnumerator::begin() {
  position_ = 0;
  trajectories_.clear();
}

int NoiseEnumerator::categorical(std::span<const double> probabilities, Draw where) {
  if (position_ == path_.size()) {
    // Exchangeable samples come in non-decreasing order of their trajectories: a replica that equals the previous one so far
    // may not choose a smaller option.
    int low = 0;
    if (exchangeable_ && where.step != Draw::whole && where.replica > 0 && where.replica <= trajectories_.size()) {
      const auto& previous = trajectories_[where.replica - 1];
      const bool like = where.replica == trajectories_.size() || trajectories_[where.replica].like_previous;
      const std::size_t drawn = where.replica < trajectories_.size() ? trajectories_[where.replica].choices.size() : 0;
      if (like) low = previous.choices.at(drawn);
    }
    std::vector<double> p(probabilities.begin(), probabilities.end());
    check_total(std::accumulate(p.begin(), p.end(), 0.0));
    const int first = first_possible(p, low);
    path_.push_back({std::move(p), first});
  }
  const int chosen = path_[position_++].chosen;
  if (exchangeable_ && where.step != Draw::whole) {
    if (where.replica >= trajectories_.size()) trajectories_.resize(where.replica + 1);
    auto& mine = trajectories_[where.replica];
    if (where.replica > 0 && mine.like_previous) {
      const auto& previous = trajectories_[where.replica - 1].choices;
      mine.like_previous = mine.choices.size() < previous.size() && previous[mine.choices.size()] == chosen;
    }
    mine.choices.push_back(chosen);
  }
  return chosen;
}

std::span<const double> NoiseEnumerator::kinks(const Draw& where) const {
  return kinks_ ? kinks_->of(where) : std::span<const double>();
}

double NoiseEnumerator::uniform(Draw where, const Pieces& pieces) {
  if (pieces.jumps)
    throw NotExact(
        "exact moments: an estimate jumps with its continuous noise at places that cannot be located: "
        "sample replicates instead");
  return visit([&] { return uniform_quadrature(pieces, kinks(where), level_); });
}

double NoiseEnumerator::logistic(Draw where, double edge) {
  return visit([&] { return logistic_quadrature(edge, kinks(where), level_); });
}

template <class Rule>
double NoiseEnumerator::visit(Rule rule) {
  if (exchangeable_) throw Bug("samples with continuous noise cannot be visited as multisets");
  if (position_ == path_.size()) {
    auto nodes = rule();
    auto weights = nodes.weights[0];
    const int first = first_possible(weights, 0);
    path_.push_back({std::move(weights), first, std::move(nodes)});
  }
  const auto& node = path_[position_++];
  return node.quadrature.points[node.chosen];
}

double NoiseEnumerator::standard(Standard noise, Draw where) {
  if (pieces_ > 0) return visit_part(noise);
  const auto& rule = gauss_rule(noise, nodes_);
  const int chosen = categorical(rule.weights, where);
  path_[position_ - 1].standard = true;
  return rule.points[chosen];
}

void NoiseEnumerator::part(int pieces, std::size_t draws) {
  pieces_ = pieces;
  draws_ = draws;
  exchangeable_ = false;  // the last draw is visited differently from the earlier ones
}

double NoiseEnumerator::visit_part(Standard noise) {
  if (position_ == path_.size()) {
    open_ = position_ + 1 == draws_;
    path_.push_back({.probabilities = {}, .chosen = 0, .standard = true, .noise = noise});
    take_rule(open_ ? GaussRule{{0}, {1}} : pieced_rule(noise, pieces_));
  }
  const auto& node = path_[position_++];
  return node.quadrature.points[node.chosen];
}

void NoiseEnumerator::close(const GaussRule& rule) {
  open_ = false;
  take_rule(rule);
}

void NoiseEnumerator::take_rule(const GaussRule& rule) {
  path_.back().quadrature = {rule.points, {rule.weights, rule.weights, rule.weights}};
  path_.back().probabilities = rule.weights;
}

std::size_t NoiseEnumerator::standard_draws() const {
  return static_cast<std::size_t>(std::count_if(path_.begin(), path_.end(), [](const auto& node) { return node.standard; }));
}

bool NoiseEnumerator::continuous() const {
  return std::any_of(path_.begin(), path_.end(),
                     [](const auto& node) { return node.standard || !node.quadrature.points.empty(); });
}

double NoiseEnumerator::weight(int rule) const {
  double weight = 1;
  for (const auto& node : path_)
    weight *= (node.quadrature.points.empty() ? node.probabilities : node.quadrature.weights[rule])[node.chosen];
  // K! over the factorials of the number of times each trajectory occurs; equal trajectories are adjacent.
  int run = 0;
  for (std::size_t k = 0; k < trajectories_.size(); ++k) {
    run = k > 0 && trajectories_[k].like_previous ? run + 1 : 1;
    weight *= static_cast<double>(k + 1) / run;
  }
  return weight;
}

bool NoiseEnumerator::next() {
  while (path_.size() > fixed_) {
    auto& node = path_.back();
    if (const int later = possible(node.probabilities, node.chosen + 1); later >= 0) {
      node.chosen = later;
      return true;
    }
    path_.pop_back();
  }
  return false;
}

std::size_t NoiseEnumerator::depth_of_parts(double visits) const {
  constexpr double enough = 32, fewest = 32;  // parts, for any number of threads; visits of a part, to pay for its memory
  std::size_t depth = 0;
  for (double parts = 1; parts < enough && depth < path_.size(); ++depth) {
    parts *= static_cast<double>(path_[depth].probabilities.size());
    if (visits < fewest * parts) break;
  }
  return depth;
}

std::vector<NoiseEnumerator> NoiseEnumerator::divide(std::size_t depth) {
  std::vector<NoiseEnumerator> later;
  depth = std::min(depth, path_.size());
  for (auto draw = depth; draw-- > fixed_;)
    for (int option = path_[draw].chosen; (option = possible(path_[draw].probabilities, option + 1)) >= 0;) {
      auto& part = later.emplace_back(*this);
      part.path_.resize(draw + 1);
      part.path_[draw].chosen = option;
      part.fixed_ = draw + 1;
    }
  fixed_ = std::max(fixed_, depth);
  return later;
}

double NoiseEnumerator::expected_visits(double outcomes) const {
  double ordered = 1;
  for (const auto& node : path_) ordered *= static_cast<double>(node.probabilities.size());
  if (!exchangeable_ || trajectories_.empty()) return ordered;
  return multisets(outcomes, static_cast<double>(trajectories_.size()));
}

}  // namespace hardgrad::measurement
