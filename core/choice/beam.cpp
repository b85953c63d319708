#include "core/choice/beam.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/support/error.hpp"

namespace hardgrad {
namespace {

constexpr double nothing = -std::numeric_limits<double>::infinity();

/// Drops all but the first k candidates.
void cut(std::vector<Candidate>& ranked, std::size_t k, Beam& beam) {
  for (std::size_t i = k; i < ranked.size(); ++i) {
    beam.rest += std::exp(ranked[i].log_p);
    beam.threshold = std::max(beam.threshold, ranked[i].perturbed);
  }
  if (ranked.size() > k) ranked.resize(k);
}

/// Most probable first; among ties the lexicographically first path.
void rank(const Beam& beam, std::vector<Candidate>& candidates) {
  constexpr double tie = 1e-12;
  const auto before = [&](const Candidate& a, const Candidate& b) {
    const auto &x = beam.paths[a.member].option, &y = beam.paths[b.member].option;
    return a.member == b.member ? a.option < b.option : x < y;
  };
  std::sort(candidates.begin(), candidates.end(),
            [&](const Candidate& a, const Candidate& b) { return a.log_p != b.log_p ? a.log_p > b.log_p : before(a, b); });
  for (auto from = candidates.begin(); from != candidates.end();) {
    auto to = from + 1;
    while (to != candidates.end() && (to - 1)->log_p - to->log_p <= tie) ++to;
    std::sort(from, to, before);
    from = to;
  }
}

double gumbel(Randomness& random, Draw where) { return -std::log(-std::log(random.uniform(where))); }

/// A Gumbel variable g of a group with maximum `most`, as it would be had the maximum been `wanted` (Kool et al. 2019,
/// app. B.3).
double shift_maximum(double g, double most, double wanted) {
  const double v = wanted - g + std::log1p(-std::exp(g - most));
  return wanted - std::max(0.0, v) - std::log1p(std::exp(-std::abs(v)));
}

}  // namespace

template <class T>
Choice<T> BeamChooser<T>::choose(Tape<T>&, const Question<T>& question) {
  question.require_options();
  const auto& asking = *question.site.rows;
  const bool root = asking.is_root();
  if (!root && (per_step_ || asking.step != question.step - 1))
    throw Bug("a beam needs a model that asks from its root or from its last choice");
  if (per_step_ || beams_.empty()) {
    beams_.emplace_back(id_.size());
    for (std::size_t b = 0; b < id_.size(); ++b) {
      beams_.back()[b].paths.emplace_back();
      begin(static_cast<int>(b), question.step, beams_.back()[b].paths[0]);
    }
  }
  const auto log_p = question.log_p.value();
  std::vector<int> parent, option;
  for (std::size_t b = 0; b < id_.size(); ++b) {
    auto& beam = beams_.back()[b];
    const auto asks = [&](int member) { return root ? static_cast<int>(b) : beam.paths[member].row.back(); };
    std::vector<Candidate> candidates;
    for (int m = 0; m < static_cast<int>(beam.paths.size()); ++m) {
      const int r = asks(m);
      for (int i = 0; i < question.site.options[r]; ++i) {
        const auto l = static_cast<double>(log_p(r, i));
        if (l > nothing) candidates.push_back({m, i, beam.paths[m].log_p + l});
      }
    }
    if (candidates.empty())  // no number anywhere: one path goes on and shows it
      candidates.push_back({0, 0, std::numeric_limits<double>::quiet_NaN()});
    std::vector<Path> paths;
    std::map<std::pair<int, int>, int> made;  // rows that paths share
    for (const auto& c : keep(static_cast<int>(b), question.step, beam, std::move(candidates))) {
      const auto [row, fresh] = made.try_emplace({asks(c.member), c.option}, static_cast<int>(parent.size()));
      if (fresh) {
        parent.push_back(asks(c.member));
        option.push_back(c.option);
      }
      auto path = beam.paths[c.member];
      path.option.push_back(c.option);
      path.row.push_back(row->second);
      path.log_p = c.log_p;
      path.perturbed = c.perturbed;
      paths.push_back(std::move(path));
    }
    beam.paths = std::move(paths);
  }
  return {Rows::after(question.site.rows, std::move(parent), question.step), std::move(option), {}};
}

template <class T>
std::vector<Candidate> TopChooser<T>::keep(int, int, Beam& beam, std::vector<Candidate> candidates) {
  rank(beam, candidates);
  cut(candidates, k_, beam);
  return candidates;
}

template <class T>
std::vector<Candidate> TopAndOneChooser<T>::keep(int example, int step, Beam& beam, std::vector<Candidate> candidates) {
  std::vector<Candidate> top, left;
  std::vector<double> mass;
  for (const auto& c : candidates) (c.member == beam.sampled ? left : top).push_back(c);
  for (const auto& c : left) mass.push_back(beam.rest * std::exp(c.log_p - beam.paths[beam.sampled].log_p));
  rank(beam, top);
  for (std::size_t i = this->k_; i < top.size(); ++i) {
    left.push_back(top[i]);
    mass.push_back(std::exp(top[i].log_p));
  }
  cut(top, this->k_, beam);
  if (left.empty()) return top;
  const double total = std::accumulate(mass.begin(), mass.end(), 0.0);
  for (double& m : mass) m = total > 0 ? m / total : 1.0 / static_cast<double>(mass.size());
  const Draw where{.example = this->id_[example], .step = static_cast<std::uint32_t>(step)};
  const int drawn = left.size() == 1 ? 0 : random_.categorical(mass, where);
  beam.sampled = static_cast<int>(top.size());
  top.push_back(left[drawn]);
  return top;
}

// The Gumbel of the empty path is the maximum over all paths: an ordinary one, since log p of all of them is 0.
template <class T>
void StochasticChooser<T>::begin(int example, int step, Path& empty) {
  if (random_.replays()) return;
  empty.perturbed = gumbel(random_, {.example = this->id_[example], .replica = ~0u, .step = static_cast<std::uint32_t>(step)});
}

template <class T>
std::vector<Candidate> StochasticChooser<T>::keep(int example, int step, Beam& beam, std::vector<Candidate> candidates) {
  Draw where{.example = this->id_[example], .step = static_cast<std::uint32_t>(step)};
  if (random_.replays()) {
    if (!this->per_step_) throw Bug("stochastic beam search draws continuous noise, which cannot be replayed");
    std::vector<double> p;
    for (const auto& c : candidates) p.push_back(std::exp(c.log_p));
    const auto order = draw_in_order(std::move(p), k_, random_, where);
    std::vector<Candidate> kept;
    std::vector<bool> drawn(candidates.size());
    for (int i : order) {
      kept.push_back(candidates[i]);
      drawn[i] = true;
    }
    for (std::size_t i = 0; i < drawn.size(); ++i)
      if (!drawn[i]) beam.rest += std::exp(candidates[i].log_p);
    return kept;
  }
  std::vector<double> most(beam.paths.size(), nothing);
  for (auto& c : candidates) {
    where.replica = static_cast<std::uint32_t>(c.member);
    where.index = static_cast<std::uint32_t>(c.option);
    c.perturbed = c.log_p + gumbel(random_, where);
    most[c.member] = std::max(most[c.member], c.perturbed);
  }
  for (auto& c : candidates) c.perturbed = shift_maximum(c.perturbed, most[c.member], beam.paths[c.member].perturbed);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.perturbed > b.perturbed; });
  cut(candidates, k_, beam);
  return candidates;
}

template <class T>
std::vector<Candidate> GivenChooser<T>::keep(int example, int, Beam& beam, std::vector<Candidate> candidates) {
  std::vector<Candidate> kept;
  std::vector<bool> taken(candidates.size());
  for (const auto& wanted : path_[example]) {
    const auto fits = [&](const Candidate& c) {
      const auto& past = beam.paths[c.member].option;
      return wanted.size() > past.size() && wanted[past.size()] == c.option &&
             std::equal(past.begin(), past.end(), wanted.begin());
    };
    const auto found = std::find_if(candidates.begin(), candidates.end(), fits) - candidates.begin();
    if (found == static_cast<std::ptrdiff_t>(candidates.size())) throw Bug("a given path is none of the model's");
    if (!taken[found]) kept.push_back(candidates[found]);
    taken[found] = true;
  }
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (!taken[i]) beam.rest += std::exp(candidates[i].log_p);
  return kept;
}

std::vector<int> draw_in_order(std::vector<double> probability, std::size_t k, Randomness& random, Draw where) {
  std::vector<int> left(probability.size()), drawn;
  std::iota(left.begin(), left.end(), 0);
  if (left.size() <= k) return left;
  while (drawn.size() < k) {
    const double total = std::accumulate(probability.begin(), probability.end(), 0.0);
    for (double& p : probability) p /= total;
    where.replica = static_cast<std::uint32_t>(drawn.size());
    const int which = random.categorical(probability, where);
    drawn.push_back(left[which]);
    left.erase(left.begin() + which);
    probability.erase(probability.begin() + which);
  }
  return drawn;
}

#define HARDGRAD_INSTANTIATE(T)        \
  template class BeamChooser<T>;       \
  template class TopChooser<T>;        \
  template class TopAndOneChooser<T>;  \
  template class StochasticChooser<T>; \
  template class GivenChooser<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
