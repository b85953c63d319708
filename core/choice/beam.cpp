#include "core/choice/beam.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/kernels/plackett_luce.hpp"
#include "core/support/error.hpp"

namespace hardgrad {
namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();

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
    const auto &x = beam.paths[a.member].answer, &y = beam.paths[b.member].answer;
    return a.member == b.member ? a.answer < b.answer : x < y;
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

/// Shifts a Gumbel variable g, of a group whose maximum is `most`, so that the group's maximum is `wanted` (Kool et al. 2019,
/// app. B.3).
double shift_maximum(double g, double most, double wanted) {
  const double v = wanted - g + std::log1p(-std::exp(g - most));
  return wanted - std::max(0.0, v) - std::log1p(std::exp(-std::abs(v)));
}

/// p is set to e^log_p over their sum, whose logarithm is returned. All log_p may underflow.
double normalise(std::span<const double> log_p, std::vector<double>& p) {
  const double most = *std::max_element(log_p.begin(), log_p.end());
  p.clear();
  for (double l : log_p) p.push_back(std::exp(l - most));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= total;
  return most + std::log(total);
}

bool begins_with(const Racer& outcome, const std::vector<int>& answer) {
  return outcome.answer.size() >= answer.size() && std::equal(answer.begin(), answer.end(), outcome.answer.begin());
}

/// The logarithm of a candidate's rate in a race: the sum over the outcomes that begin with it. Rates below one path only matter by
/// their ratios, so without a dominant outcome below it their common factor is left out.
double log_rate(const Candidate& c, const Path& member) {
  const auto* law = member.law;
  if (!law) return c.log_p;
  const std::size_t place = member.answer.size();
  double others = std::exp(c.log_p), kept = 0;
  bool found = false, whole = false;
  for (const auto& outcome : law->dominant) {
    if (outcome.answer.size() <= place || !begins_with(outcome, member.answer) || outcome.answer[place] != c.answer) continue;
    found = true;
    whole = place + 1 == outcome.answer.size();
    others -= std::exp(outcome.log_p);
    if (&outcome != &law->dominant.back()) kept += std::exp(outcome.log_p);
  }
  if (!found) return c.log_p + std::log(law->factor);
  constexpr double rounding = 1e-7;  // of log p in float; the others have 1e-4 or more in all (dominant_outcomes.cpp)
  return std::log(kept + (whole || others <= rounding ? 0 : law->factor * others));
}

/// Drops the candidates that are left out; all remain if there is no other.
void leave_out(Beam& beam, std::vector<Candidate>& candidates) {
  const auto stays = [&](const Candidate& c) { return log_rate(c, beam.paths[c.member]) > impossible; };
  const auto left = std::stable_partition(candidates.begin(), candidates.end(), stays);
  if (left == candidates.begin()) return;
  for (auto c = left; c != candidates.end(); ++c) beam.rest += std::exp(c->log_p);
  candidates.erase(left, candidates.end());
}

/// Draws perturbed log p by their order: of the options left of each path the next one is drawn, then the time at which its
/// clock rings first. - log of that time is log p plus Gumbel noise. Beyond the first `ordered` of a path each clock rings
/// alone.
void race(const Beam& beam, std::vector<Candidate>& candidates, std::size_t ordered, Randomness& random, Draw where) {
  std::vector<std::vector<Candidate*>> of_member(beam.paths.size());
  for (auto& c : candidates) of_member[c.member].push_back(&c);
  std::vector<double> rates, p;
  for (std::size_t m = 0; m < of_member.size(); ++m) {
    auto& left = of_member[m];
    where.replica = static_cast<std::uint32_t>(m);
    const auto log_wait = [&](const Candidate& c) {
      where.index = static_cast<std::uint32_t>(c.answer);
      return std::log(-std::log(random.uniform(where)));
    };
    double log_time = impossible;
    for (std::size_t rank = 0; rank < ordered && !left.empty(); ++rank) {
      rates.clear();
      for (const auto* c : left) rates.push_back(log_rate(*c, beam.paths[m]));
      const double log_sum = normalise(rates, p);
      where.index = option_index ^ static_cast<std::uint32_t>(rank);
      const auto next = left.begin() + (left.size() == 1 ? 0 : random.categorical(p, where));
      log_time = kernels::log_sum(log_time, log_wait(**next) - log_sum);
      (*next)->perturbed = -log_time;
      left.erase(next);
    }
    for (auto* c : left) c->perturbed = -kernels::log_sum(log_time, log_wait(*c) - log_rate(*c, beam.paths[m]));
  }
}

}  // namespace

template <class T>
void BeamHandler<T>::start(const Question<T>& question, int column) {
  scopes_.push_back({question.step, column, std::vector<Beam>(id_.size())});
  for (std::size_t b = 0; b < id_.size(); ++b)
    begin({.example = id_[b],
           .replica = ~0u,
           .step = static_cast<std::uint32_t>(question.step),
           .column = static_cast<std::uint32_t>(std::max(0, column))},
          scopes_.back().beams[b].paths.emplace_back());
}

template <class T>
void BeamHandler<T>::grow(const Question<T>& question, int example, int column, Beam& beam) {
  const bool root = question.site.rows->is_root();
  std::vector<Candidate> candidates;
  for (int m = 0; m < static_cast<int>(beam.paths.size()); ++m) {
    const int choice = (root ? example : beam.paths[m].row.back()) * question.site.columns + column;
    const auto log_p = question.distribution->log_p_of_answers(choice);
    for (int i = 0; i < static_cast<int>(log_p.size()); ++i)
      if (log_p[i] > impossible) candidates.push_back({m, i, beam.paths[m].log_p + log_p[i]});
  }
  if (candidates.empty())  // all log p are NaN: one path continues, so that its cost is NaN and is reported
    candidates.push_back({0, 0, std::numeric_limits<double>::quiet_NaN()});
  const Draw where{
      .example = id_[example], .step = static_cast<std::uint32_t>(question.step), .column = static_cast<std::uint32_t>(column)};
  std::vector<Path> paths;
  for (const auto& c : keep(example, where, beam, std::move(candidates))) {
    auto path = beam.paths[c.member];
    path.answer.push_back(c.answer);
    const auto is_on = [&](const Racer& outcome) { return begins_with(outcome, path.answer); };
    if (path.law && std::none_of(path.law->dominant.begin(), path.law->dominant.end(), is_on)) path.law = nullptr;
    path.log_p = c.log_p;
    path.perturbed = c.perturbed;
    paths.push_back(std::move(path));
  }
  beam.paths = std::move(paths);
}

template <class T>
Choice<T> BeamHandler<T>::choose(Tape<T>&, const Question<T>& question) {
  const auto& asking = *question.site.rows;
  const bool root = asking.is_root();
  if (!root && (per_step_ || asking.step != question.step - 1))
    throw Bug("a beam needs a model that asks from its root or from the rows of its last choice");
  const int D = question.site.columns;
  const auto* declared = per_step_ ? per_step_->site(question.site.name) : nullptr;
  const bool side_by_side = D > 1 && declared && declared->scope == DependenceScope::own_column;
  grows_ = !per_step_ || (D > 1 && !side_by_side);
  const std::size_t first = per_step_ ? scopes_.size() : 0;
  if (side_by_side)
    for (int d = 0; d < D; ++d) start(question, d);
  else if (per_step_ || scopes_.empty())
    start(question, -1);

  std::vector<int> parent, answer;
  std::vector<char> padding_mask;
  for (int b = 0; b < static_cast<int>(id_.size()); ++b) {
    if (side_by_side) {  // in every column, row i holds the path of rank i
      std::size_t most = 0;
      for (int d = 0; d < D; ++d) {
        auto& beam = scopes_[first + d].beams[b];
        grow(question, b, d, beam);
        most = std::max(most, beam.paths.size());
      }
      const std::size_t from = parent.size();
      parent.insert(parent.end(), most, b);
      for (std::size_t i = 0; i < most; ++i)
        for (int d = 0; d < D; ++d) {
          auto& paths = scopes_[first + d].beams[b].paths;
          padding_mask.push_back(i >= paths.size());
          answer.push_back(paths[std::min(i, paths.size() - 1)].answer[0]);
          if (i < paths.size()) paths[i].row.push_back(static_cast<int>(from + i));
        }
      continue;
    }
    auto& beam = scopes_[first].beams[b];
    for (int d = 0; d < D; ++d) grow(question, b, d, beam);
    std::map<std::pair<int, std::vector<int>>, int> made;  // paths with the same answers share a row
    for (auto& path : beam.paths) {
      const int row = root ? b : path.row.back();
      std::vector<int> set(path.answer.end() - D, path.answer.end());
      const auto [found, fresh] = made.try_emplace({row, set}, static_cast<int>(parent.size()));
      if (fresh) {
        parent.push_back(row);
        answer.insert(answer.end(), set.begin(), set.end());
      }
      path.row.push_back(found->second);
    }
  }
  auto choice = question.distribution->unrank(Rows::after(question.site.rows, std::move(parent), question.step), answer);
  choice.side_by_side = side_by_side;
  choice.padding_mask = std::move(padding_mask);
  return choice;
}

template <class T>
std::vector<Candidate> TopHandler<T>::keep(int, Draw, Beam& beam, std::vector<Candidate> candidates) {
  rank(beam, candidates);
  cut(candidates, k_, beam);
  return candidates;
}

template <class T>
std::vector<Candidate> TopAndOneHandler<T>::keep(int, Draw where, Beam& beam, std::vector<Candidate> candidates) {
  std::vector<Candidate> top, left;
  std::vector<double> mass;
  for (const auto& c : candidates) (c.member == beam.sampled ? left : top).push_back(c);
  mass.reserve(left.size());
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
  const int drawn = left.size() == 1 ? 0 : random_.categorical(mass, where);
  beam.sampled = static_cast<int>(top.size());
  top.push_back(left[drawn]);
  return top;
}

// The perturbed log p of the empty path is the maximum over all paths. It is a standard Gumbel, since their p sum to 1.
template <class T>
void StochasticHandler<T>::begin(Draw where, Path& empty) {
  if (!random_.enumerates()) empty.perturbed = gumbel(random_, where);
  if (random_.options_first())
    empty.law =
        random_.without_one({.example = where.example, .step = whole_ ? Draw::whole : where.step, .column = where.column});
}

template <class T>
std::vector<Candidate> StochasticHandler<T>::keep(int, Draw where, Beam& beam, std::vector<Candidate> candidates) {
  if (random_.enumerates()) {
    if (this->grows())
      throw NotExact("stochastic beam search draws continuous noise, which cannot be replayed: measure it with replicates");
    std::vector<double> log_p;
    log_p.reserve(candidates.size());
    for (const auto& c : candidates) log_p.push_back(c.log_p);
    const auto order = draw_in_order(std::move(log_p), k_, random_, where);
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
  if (random_.options_first()) {
    leave_out(beam, candidates);
    race(beam, candidates, k_, random_, where);
  } else {
    for (auto& c : candidates) {
      where.replica = static_cast<std::uint32_t>(c.member);
      where.index = static_cast<std::uint32_t>(c.answer);
      c.perturbed = c.log_p + gumbel(random_, where);
    }
  }
  std::vector<double> most(beam.paths.size(), impossible);
  for (const auto& c : candidates) most[c.member] = std::max(most[c.member], c.perturbed);
  for (auto& c : candidates) c.perturbed = shift_maximum(c.perturbed, most[c.member], beam.paths[c.member].perturbed);
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.perturbed > b.perturbed; });
  cut(candidates, k_, beam);
  return candidates;
}

template <class T>
std::vector<Candidate> GivenHandler<T>::keep(int example, Draw, Beam& beam, std::vector<Candidate> candidates) {
  std::vector<Candidate> kept;
  std::vector<bool> taken(candidates.size());
  for (const auto& wanted : path_[example]) {
    const auto fits = [&](const Candidate& c) {
      const auto& past = beam.paths[c.member].answer;
      return wanted.size() > past.size() && wanted[past.size()] == c.answer &&
             std::equal(past.begin(), past.end(), wanted.begin());
    };
    const auto position = std::find_if(candidates.begin(), candidates.end(), fits) - candidates.begin();
    if (position == static_cast<std::ptrdiff_t>(candidates.size())) throw Bug("a given path is not a path of the model");
    if (!taken[position]) kept.push_back(candidates[position]);
    taken[position] = true;
  }
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (!taken[i]) beam.rest += std::exp(candidates[i].log_p);
  return kept;
}

std::vector<int> draw_in_order(std::vector<double> log_p, std::size_t k, Randomness& random, Draw where) {
  std::vector<int> left(log_p.size()), drawn;
  std::iota(left.begin(), left.end(), 0);
  if (left.size() <= k) return left;
  std::vector<double> probability;
  while (drawn.size() < k) {
    normalise(log_p, probability);
    where.replica = static_cast<std::uint32_t>(drawn.size());
    const int which = random.categorical(probability, where);
    drawn.push_back(left[which]);
    left.erase(left.begin() + which);
    log_p.erase(log_p.begin() + which);
  }
  return drawn;
}

#define HARDGRAD_INSTANTIATE(T)        \
  template class BeamHandler<T>;       \
  template class TopHandler<T>;        \
  template class TopAndOneHandler<T>;  \
  template class StochasticHandler<T>; \
  template class GivenHandler<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
