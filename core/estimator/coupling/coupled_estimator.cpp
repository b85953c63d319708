#include "core/estimator/coupling/coupled_estimator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/kernels/functions.hpp"
#include "core/support/array.hpp"

namespace hardgrad {

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

  std::vector<double> p, kept;  // concatenated over all choices: [S] and [kept] per choice
  std::vector<int> option(members_);
  const auto brancher = [&](Tape<T>&, const Question<T>& question, const std::vector<BranchPoint>& branch_points) {
    const auto& all_options = question.categories().options();
    const auto log_p = question.categories().log_p().value();
    const std::size_t D = question.site.columns, S = log_p.cols, choices = branch_points.size() * D;
    const std::size_t first_p = p.size(), first_kept = kept.size();
    p.resize(first_p + choices * S);
    kept.resize(first_kept + choices * kept_);
    std::vector<double> of_question(log_p.data, log_p.data + log_p.size());
    kernels::exp_all(of_question.data(), of_question.data(), of_question.size());
    Branches<T> branches{std::vector<int>(branch_points.size() * members * D)};
    if (together(all_options, S)) {
      std::vector<std::span<int>> of_members(members_);
      for (std::size_t g = 0; g < branch_points.size(); ++g) {
        const auto of_row = std::span(p).subspan(first_p + g * D * S, D * S);
        std::copy_n(of_question.begin() + static_cast<std::ptrdiff_t>(branch_points[g].row * D * S), D * S, of_row.begin());
        for (int m = 0; m < members_; ++m) of_members[m] = std::span(branches.option).subspan((g * members_ + m) * D, D);
        draw_columns(of_row, of_members, problem.random, branch_points[g].where);
      }
      return branches;
    }
    for (std::size_t c = 0; c < choices; ++c) {
      const std::size_t g = c / D, d = c % D, asked = branch_points[g].row * D + d, options = all_options[asked];
      if (options == 1) continue;
      const auto of_cell = std::span(p).subspan(first_p + c * S, options);
      std::copy_n(of_question.begin() + static_cast<std::ptrdiff_t>(asked * S), options, of_cell.begin());
      auto where = branch_points[g].where;
      where.column = static_cast<std::uint32_t>(d);
      std::fill(option.begin(), option.end(), 0);
      Coupling coupling{of_cell, option, std::span(kept).subspan(first_kept + c * kept_, kept_)};
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
  std::vector<PerChoice> f;
  std::vector<std::vector<int>> taken;
  for (int m = 0; m < members; ++m) {
    f.push_back(run.losses(m, credit));
    taken.push_back(run.options(m));
  }
  const auto& layout = *run.choices().layout();
  auto g = run.choices().zeros();
  std::vector<double> cost(members_);
  std::vector<std::span<const int>> options_of(members_);
  std::vector<std::span<const double>> costs_of(members_);
  for (std::size_t t = 0; t < layout.steps.size(); ++t) {
    if (const auto [D, S, choice, logit] = layout.steps[t]; together(layout.options_of(t), S)) {
      for (std::size_t n = 0; n < layout.samples; ++n) {
        for (int k = 0; k < members_; ++k) {
          options_of[k] = std::span(taken[k]).subspan(choice + n * D, D);
          costs_of[k] = std::span(f[k].value).subspan(choice + n * D, D);
        }
        const std::size_t at = logit + n * D * S;
        gradient_of_columns(std::span(p).subspan(at, D * S), options_of, costs_of, std::span(g.value).subspan(at, D * S));
      }
      continue;
    }
    for (std::size_t c = layout.steps[t].choice, end = c + layout.samples * layout.steps[t].columns; c < end; ++c) {
      const auto options = static_cast<std::size_t>(layout.options[c]),
                 column = (c - layout.steps[t].choice) % layout.steps[t].columns;
      if (options == 1) continue;
      for (int k = 0; k < members_; ++k) {
        option[k] = taken[member(column, k)][c];
        cost[k] = f[member(column, k)].value[c];
      }
      gradient(
          {std::span<const double>(p).subspan(layout.logit[c], options), option, std::span(kept).subspan(c * kept_, kept_)},
          cost, std::span(g.value).subspan(layout.logit[c], options));
    }
  }
  const auto surrogate = add(run.path(all_lawful()), run.choices().surrogate(g));
  const double loss = run.mean_loss();
  return {.surrogate = surrogate, .episode = run.release(), .loss = loss};
}

// One choice is one column.
template <class T>
void CoupledEstimator<T>::draw(Coupling& coupling, Randomness& random, Draw where) const {
  std::vector<std::span<int>> option;
  for (int& of_member : coupling.option) option.emplace_back(&of_member, 1);
  draw_columns(coupling.p, option, random, where);
}
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
