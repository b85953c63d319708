#include "experiments/verification/promised.hpp"

#include <algorithm>

#include "experiments/verification/promise_trials.hpp"

namespace hardgrad::verification {
namespace {

const std::vector<Ground> one_choice = {{2}, {3}, {3, 1, 3.0}};
/// The same, and one for an estimator that corrects for its behaviour policy.
const std::vector<Ground> one_choice_off_policy = {
    one_choice[0], one_choice[1], one_choice[2], {.options = 3, .off_policy = true}};
const Ground two_columns = {2, 2};
const std::vector<Ground> grounds = {one_choice[0], one_choice[1], one_choice[2], two_columns};
/// Models whose losses have no pathwise term.
const std::vector<Ground> score_alone = {{.options = 2, .loss = {.path = false}},
                                         {.options = 2, .loss = {.level = 5, .linear = 9, .path = false}},
                                         {.options = 3, .spread = 1.5, .loss = {.path = false}},
                                         {.options = 2, .columns = 2, .loss = {.path = false, .per_column = true}}};
const std::vector<Ground> sums = {{2, 2, 0.9, {.per_column = true}}, {2, 2, 3.0, {.per_column = true}}};

void judge(Trials& trials) {
  const auto& promise = trials.promise;
  const auto on = [&](const std::vector<Ground>& where, Finding (*check)(const Promise&, const Trial&)) {
    trials.on_grounds(where, [&promise, check](const Trial& trial) { return check(promise, trial); });
  };
  using Kind = Promise::Kind;
  switch (promise.kind) {
    case Kind::mean: return on(corrects_behaviour(trials.tested()) ? one_choice_off_policy : one_choice, mean);
    case Kind::advantages: return on(score_alone, advantages);
    case Kind::unbiased: return trials.on_grounds(grounds, unbiased);
    case Kind::variance: return on({two_columns}, variance);
    case Kind::same_moments: return on(grounds, same_moments);
    case Kind::less_variance: return on(promise.loss == Promise::Loss::sum ? sums : grounds, less_variance);
    case Kind::consistent: return consistent(trials);
    case Kind::limit: return limit(trials);
    case Kind::unshifted: return unshifted(trials);
    case Kind::noiseless: return noiseless(trials);
    case Kind::best_constant: return best_constant(trials);
    case Kind::descends_square: return trials.on_grounds({one_choice[0], two_columns}, descends_square);
  }
}

}  // namespace

std::vector<Check> keeps_promises(const Spec& spec, bool to_the_first_failure) {
  std::vector<Check> checks;
  const auto failed = [](const Check& check) { return check.outcome == Check::Outcome::failed; };
  for (const auto& promise : Estimators::instance().at(spec.name).promises) {
    if (to_the_first_failure && std::any_of(checks.begin(), checks.end(), failed)) break;
    Trials trials(spec, promise, checks);
    try {
      judge(trials);
      if (!trials.any()) trials.add("", "no network could test it");
    } catch (const std::exception& e) {
      trials.add("", e.what());
    }
  }
  return checks;
}

}  // namespace hardgrad::verification
