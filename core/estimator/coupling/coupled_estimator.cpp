#include "core/estimator/coupling/coupled_estimator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/branching.hpp"
#include "core/kernels/functions.hpp"
#include "core/random/column_draws.hpp"
#include "core/support/array.hpp"

namespace hardgrad {
namespace {

constexpr std::size_t columns_at_once =
    256;  // columns drawn and estimated together: their numbers stay in the first-level cache

}  // namespace

template <class T>
Estimate<T> CoupledEstimator<T>::estimate(const Problem<T>& problem) const {
  // If the columns of a question share costs, members without the choice's distribution change one choice each.
  const auto& structure = problem.model.structure();
  const bool one_each = !all_lawful() && !structure.factorised();
  const int others = members_ - 1, members = 1 + others * (one_each ? std::max(1, structure.most_columns()) : 1);
  const auto member = [&](std::size_t column, int k) {
    return k == 0 || !one_each ? k : static_cast<int>(column) * others + k;
  };

  const auto together = [&](std::span<const int> options, std::size_t S) {
    return by_columns() && !one_each && S > 1 && all_are(options, S);  // with one option there is no choice
  };

  std::vector<double> kept;        // concatenated over all choices: [kept] each
  std::vector<char> all_together;  // of each step
  std::vector<int> option(members_);
  const auto brancher = [&](Tape<T>&, const Question<T>& question, const std::vector<BranchPoint>& branch_points) {
    const auto& all_options = question.categories().options();
    const auto log_p = question.categories().log_p().value();
    const std::size_t D = question.site.columns, S = log_p.cols, choices = branch_points.size() * D;
    if (one_each) require_changes(static_cast<double>(branch_points.size()) * members, question.site.columns, problem.cap);
    const std::size_t first_kept = kept.size();
    kept.resize(first_kept + choices * kept_);
    Branches<T> branches{std::vector<int>(branch_points.size() * members * D)};
    all_together.push_back(together(all_options, S));
    if (all_together.back()) {
      std::vector<std::span<int>> of_members(members_);
      for (std::size_t g = 0; g < branch_points.size(); ++g)
        for (std::size_t from = 0; from < D; from += columns_at_once) {
          const std::size_t n = std::min(columns_at_once, D - from);
          for (int m = 0; m < members_; ++m)
            of_members[m] = std::span(branches.option).subspan((g * members_ + m) * D + from, n);
          auto where = branch_points[g].where;
          where.column = static_cast<std::uint32_t>(from);
          draw_columns({log_p.row(branch_points[g].row * D + from), n * S}, of_members, problem.random, where);
        }
      return branches;
    }
    const auto p = exponentials({log_p.data, log_p.size()});
    for (std::size_t c = 0; c < choices; ++c) {
      const std::size_t g = c / D, d = c % D, asked = branch_points[g].row * D + d, options = all_options[asked];
      if (options == 1) continue;
      auto where = branch_points[g].where;
      where.column = static_cast<std::uint32_t>(d);
      std::fill(option.begin(), option.end(), 0);
      Coupling coupling{std::span<const double>(p).subspan(asked * S, options), option,
                        std::span(kept).subspan(first_kept + c * kept_, kept_)};
      draw(coupling, problem.random, where);
      for (int m = 0; m < members; ++m) branches.option[(g * members + m) * D + d] = option[m < members_ && !one_each ? m : 0];
      for (int k = 1; k < members_; ++k) branches.option[(g * members + member(d, k)) * D + d] = option[k];
    }
    return branches;
  };

  // Rows that left the base path take its later options if both have the same distribution there.
  const auto continuation = structure.independent() ? Continuation::alike : Continuation::sampled;
  const auto credit = all_lawful() ? credit_ : Credit::reward_to_go;
  Coupled<T> run(problem, problem.one_copy ? 1 : groups_, members, brancher, continuation, all_lawful());
  const auto finish = [&](Var<T> score) -> Estimate<T> {
    const auto surrogate = add(run.path(all_lawful()), score);
    const double loss = run.mean_loss();
    return {.surrogate = surrogate, .episode = run.release(), .loss = loss};
  };
  if (std::find(all_together.begin(), all_together.end(), 0) == all_together.end()) {
    auto score = problem.tape.constant(1, 1);
    for (int t = 0; t < run.steps(); ++t) score = add(score, surrogate_of_columns(run, t, credit));
    return finish(score);
  }
  std::vector<PerChoice> f;
  std::vector<std::vector<int>> taken;
  for (int m = 0; m < members; ++m) {
    f.push_back(run.losses(m, credit));
    taken.push_back(run.options(m));
  }
  const auto& layout = *run.choices().layout();
  const auto& p = run.choices().p().value;
  auto g = run.choices().zeros();
  std::vector<double> cost(members_);
  for (const auto& step : layout.steps)
    for (std::size_t c = step.choice, end = c + layout.samples * step.columns; c < end; ++c) {
      const auto options = static_cast<std::size_t>(layout.options[c]), column = (c - step.choice) % step.columns;
      if (options == 1) continue;
      for (int k = 0; k < members_; ++k) {
        option[k] = taken[member(column, k)][c];
        cost[k] = f[member(column, k)].value[c];
      }
      gradient(
          {std::span<const double>(p).subspan(layout.logit[c], options), option, std::span(kept).subspan(c * kept_, kept_)},
          cost, std::span(g.value).subspan(layout.logit[c], options));
    }
  return finish(run.choices().surrogate(g));
}

// The mean over the groups of <their gradients, logits>. Columns are computed in blocks, whose numbers stay in the cache.
// Probabilities have the rounding of T, everything else that of double.
template <class T>
Var<T> CoupledEstimator<T>::surrogate_of_columns(Coupled<T>& run, int step, Credit credit) const {
  const auto& distribution = run.episode().steps()[step].question.categories();
  const auto log_p = distribution.log_p().value();
  const std::size_t D = distribution.columns(), S = log_p.cols, groups = run.groups();
  const double share = 1 / static_cast<double>(groups);
  std::vector<std::vector<double>> losses;
  for (int k = 0; k < members_; ++k) losses.push_back(run.losses(step, k, credit));
  const bool by_column = losses[0].size() > groups;
  const auto weight = run.episode().tape().template scratch<T>(log_p.size());
  if (distribution.rows() > groups || groups_ > 1) std::ranges::fill(weight, T{0});  // of rows at which none chooses
  std::vector<T> rounded(columns_at_once * S);
  std::vector<double> p(columns_at_once * S), of_group(columns_at_once * S), sum(columns_at_once * S),
      equal(by_column ? 0 : members_ * columns_at_once);
  std::vector<std::span<const int>> option(members_);
  std::vector<std::span<const double>> f(members_);
  for (std::size_t first = 0, last; first < groups; first = last) {
    const auto row = static_cast<std::size_t>(run.asking(step, first));
    for (last = first + 1; last < groups && run.asking(step, last) == run.asking(step, first);) ++last;
    for (std::size_t from = 0; from < D; from += columns_at_once) {
      const std::size_t n = std::min(columns_at_once, D - from), at = (row * D + from) * S;
      kernels::exp_all(log_p.data + at, rounded.data(), n * S);
      std::copy_n(rounded.begin(), n * S, p.begin());
      for (std::size_t g = first; g < last; ++g) {
        for (int k = 0; k < members_; ++k) {
          option[k] = run.options(step, g, k).subspan(from, n);
          if (by_column) {
            f[k] = std::span(losses[k]).subspan(g * D + from, n);
            continue;
          }
          const auto same = std::span(equal).subspan(k * columns_at_once, n);
          std::ranges::fill(same, losses[k][g]);
          f[k] = same;
        }
        std::fill_n(of_group.begin(), n * S, 0.0);
        gradient_of_columns(std::span(p).first(n * S), option, f, std::span(of_group).first(n * S));
        if (last == first + 1)
          for (std::size_t i = 0; i < n * S; ++i) weight[at + i] = static_cast<T>(0 + share * of_group[i]);
        else
          for (std::size_t i = 0; i < n * S; ++i) sum[i] = (g == first ? 0 : sum[i]) + share * of_group[i];
      }
      if (last > first + 1) std::copy_n(sum.begin(), n * S, weight.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  return inner_product(distribution.logits(), std::span<const T>(weight));
}

template <class T>
std::vector<double> CoupledEstimator<T>::exponentials(std::span<const T> log_p) {
  std::vector<double> p(log_p.size());
  probabilities(log_p, std::span(p));
  return p;
}

// One choice is one column.
template <class T>
void CoupledEstimator<T>::gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const {
  std::vector<std::span<const int>> option;
  std::vector<std::span<const double>> cost;
  for (const int& of_member : coupling.option) option.emplace_back(&of_member, 1);
  for (const double& of_member : f) cost.emplace_back(&of_member, 1);
  gradient_of_columns(coupling.p, option, cost, logits);
}

std::string needs_pairs(const SamplesConfig<>& config, const Structure&) {
  if (const int samples = config.samples; samples % 2 != 0)
    return fmt::format("samples={} does not make pairs: take an even number", samples);
  return "";
}
template class CoupledEstimator<float>;
template class CoupledEstimator<double>;

}  // namespace hardgrad
