#include "core/estimator/coupling/coupled_estimator.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/autodiff/elementwise.hpp"

namespace hardgrad {

template <class T>
Estimate<T> CoupledEstimator<T>::estimate(const Problem<T>& problem) const {
  struct Step {
    std::size_t options, columns;
    std::vector<double> p;     // [groups D, S]
    std::vector<double> kept;  // [groups D, kept]
  };
  std::vector<Step> steps;
  // The coupling of cell d of group g: member k's option stands at [g, k, d] of a fork.
  const auto coupled = [&](Step& step, std::size_t cell, std::size_t count, std::span<int> option) {
    return Coupling{std::span<const double>(step.p).subspan(cell * step.options, count), option,
                    std::span(step.kept).subspan(cell * kept_, kept_)};
  };
  std::vector<int> option(members_);
  const auto forker = [&](Tape<T>&, const Question<T>& question, const std::vector<Forking>& forking) {
    const auto log_p = question.log_p.value();
    const std::size_t D = question.site.columns;
    auto& step = steps.emplace_back(Step{log_p.cols, D, std::vector<double>(forking.size() * D * log_p.cols),
                                         std::vector<double>(forking.size() * D * kept_)});
    Fork<T> fork{std::vector<int>(forking.size() * members_ * D)};
    for (std::size_t g = 0; g < forking.size(); ++g)
      for (std::size_t d = 0; d < D; ++d) {
        const std::size_t cell = g * D + d, asked = forking[g].row * D + d, options = question.site.options[asked];
        if (options == 1) continue;
        for (std::size_t i = 0; i < options; ++i)
          step.p[cell * step.options + i] = std::exp(static_cast<double>(log_p(asked, i)));
        auto where = forking[g].where;
        where.column = static_cast<std::uint32_t>(d);
        std::fill(option.begin(), option.end(), 0);
        auto coupling = coupled(step, cell, options, option);
        draw(coupling, problem.random, where);
        for (int k = 0; k < members_; ++k) fork.option[(g * members_ + k) * D + d] = option[k];
      }
    return fork;
  };

  // Rows that left the base path go on with its later options where these have the same distribution for both.
  const auto continuation = problem.model.structure().independent() ? Continuation::alike : Continuation::sampled;
  const auto credit = all_lawful() ? credit_ : Credit::reward_to_go;
  Coupled<T> run(problem, groups_, members_, forker, continuation, all_lawful());
  auto surrogate = run.path(all_lawful());
  for (int t = 0; t < run.steps(); ++t) {
    auto& step = steps[t];
    const std::size_t D = step.columns;
    const auto f = run.losses(t, credit);
    const auto& fork = run.fork(t);
    std::vector<double> logits(step.p.size());
    for (std::size_t g = 0; g < run.groups(); ++g)
      for (std::size_t d = 0; d < D; ++d) {
        const std::size_t cell = g * D + d,
                          options = run.episode().steps()[t].question.site.options[run.forking(t)[g].row * D + d];
        if (options == 1) continue;
        for (int k = 0; k < members_; ++k) option[k] = fork.option[(g * members_ + k) * D + d];
        gradient(coupled(step, cell, options, option), std::span(f).subspan(g * members_, members_),
                 std::span(logits).subspan(cell * step.options, options));
      }
    surrogate = add(surrogate, run.at_logits(t, logits));
  }
  const double loss = run.mean_loss();
  return {.surrogate = surrogate, .episode = run.release(), .loss = loss};
}

std::string needs_pairs(const Settings& settings, const Structure&) {
  if (const int samples = settings.integer("samples"); samples % 2 != 0)
    return fmt::format("samples={} does not make pairs: take an even number", samples);
  return "";
}
template class CoupledEstimator<float>;
template class CoupledEstimator<double>;

}  // namespace hardgrad
