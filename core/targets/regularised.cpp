// regularised: lambda_r score term + path term - lambda_e entropy, the rule of Xu et al. 2015, Show, Attend and Tell, sec. 4.1.
//
// With lambda_r = 1 it is the gradient of E[f] - lambda_e H[p(z)]. With semi, it is the mean of this rule and the same rule
// with every choice replaced by its expectation.
#include <fmt/format.h>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::regularised {
namespace {

struct Config {
  double lambda_r = 1, lambda_e = 0;
  bool semi = false;

  void declare(Fields& field) {
    field(lambda_r, "lambda_r", 0, 1e6, "weight of the score term");
    field(lambda_e, "lambda_e", 0, 1e6, "weight of the entropy of every question");
    field(semi, "semi", "every choice replaced by its expectation with probability 1/2");
  }
};

/// sum_z detach(p(z)) f(z): the surrogate of the path term.
template <class T>
Var<T> path_term(Episode<T>& episode) {
  auto total = episode.tape().constant(1, 1);
  for (const auto& cost : episode.costs()) {
    const auto weight = exp(episode.tape().detach(episode.path_log_probability(cost.rows)));
    total = add(total, sum(multiply(weight, loss_of_paths(episode, cost)), 1.0 / episode.examples()));
  }
  return total;
}

template <class T>
Estimate<T> objective(const Target& target, const Problem<T>& problem) {
  const auto config = read<Config>(target.settings());
  const auto lambda_r = static_cast<T>(config.lambda_r), lambda_e = static_cast<T>(config.lambda_e);
  EnumerateHandler<T> handler(problem.model.structure());
  auto episode = problem.run(handler, CostWeights::path_probability);
  auto total = affine(hardgrad::expected_loss(*episode), lambda_r);
  if (lambda_r != 1) total = add(total, affine(path_term(*episode), 1 - lambda_r));
  if (lambda_e != 0) total = add(total, affine(path_entropy(*episode), -lambda_e));
  if (config.semi) {
    ExpectedHandler<T> expected;
    const auto soft = problem.run(expected, CostWeights::equal);
    auto half = hardgrad::expected_loss(*soft);
    if (lambda_e != 0) half = add(half, affine(path_entropy(*soft), -lambda_e));
    total = affine(add(total, half), T{0.5});
  }
  return {.surrogate = total, .episode = std::move(episode), .loss = static_cast<double>(total.item())};
}

}  // namespace

const TargetEntry entry = {
    .name = "regularised",
    .summary = "lambda_r score term + path term - lambda_e entropy",
    .parameters = declared<Config>(),
    .reference_estimator =
        [](const Target& target) {
          const auto config = read<Config>(target.settings());
          return fmt::format("entropy_regularised[samples=16,reward_to_go=true,lambda_r={},lambda_e={},semi={}]",
                             config.lambda_r, config.lambda_e, config.semi);
        },
    .reported =  // the reported loss excludes weights and terms that only the gradient needs
    [](const Target& target) { return fmt::format("regularised[semi={}]", read<Config>(target.settings()).semi); },
};
HARDGRAD_TARGET(regularised, objective, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::regularised
