#include "core/estimator/coupling/coupled_estimator.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/autodiff/elementwise.hpp"

namespace hardgrad {

template <class T>
Estimate<T> CoupledEstimator<T>::estimate(const Problem<T>& problem) const {
  struct Step {
    std::size_t options;
    std::vector<double> p;     // [groups, S]
    std::vector<double> kept;  // [groups, kept]
  };
  std::vector<Step> steps;
  const auto probabilities = [](const Step& step, std::size_t group, std::size_t count) {
    return std::span<const double>(step.p).subspan(group * step.options, count);
  };
  const auto forker = [&](Tape<T>&, const Question<T>& question, const std::vector<Forking>& forking) {
    const auto log_p = question.log_p.value();
    auto& step = steps.emplace_back(Step{log_p.cols, std::vector<double>(forking.size() * log_p.cols),
                                         std::vector<double>(forking.size() * kept_)});
    Fork<T> fork{std::vector<int>(forking.size() * members_)};
    for (std::size_t g = 0; g < forking.size(); ++g) {
      const auto [row, where] = forking[g];
      const std::size_t options = question.site.options[row];
      if (options == 1) continue;
      for (std::size_t i = 0; i < options; ++i)
        step.p[g * step.options + i] = std::exp(static_cast<double>(log_p(row, i)));
      Coupling coupling{probabilities(step, g, options), std::span(fork.option).subspan(g * members_, members_),
                        std::span(step.kept).subspan(g * kept_, kept_)};
      draw(coupling, problem.random, where);
    }
    return fork;
  };

  // Rows that left the base path go on with its later options where these have the same law for both.
  const auto continuation = problem.model.structure().independent() ? Continuation::alike : Continuation::sampled;
  const auto credit = all_lawful() ? credit_ : Credit::reward_to_go;
  Coupled<T> run(problem, groups_, members_, forker, continuation, all_lawful());
  auto surrogate = run.path(all_lawful());
  for (int t = 0; t < run.steps(); ++t) {
    auto& step = steps[t];
    const auto f = run.losses(t, credit);
    auto option = run.fork(t).option;
    std::vector<double> logits(step.p.size());
    for (std::size_t g = 0; g < run.groups(); ++g) {
      const std::size_t options = run.episode().steps()[t].question.site.options[run.forking(t)[g].row];
      if (options == 1) continue;
      const Coupling coupling{probabilities(step, g, options), std::span(option).subspan(g * members_, members_),
                              std::span(step.kept).subspan(g * kept_, kept_)};
      gradient(coupling, std::span(f).subspan(g * members_, members_), std::span(logits).subspan(g * step.options, options));
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
