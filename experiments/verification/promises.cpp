#include "experiments/verification/promises.hpp"

#include <algorithm>
#include <numeric>

namespace hardgrad::verification {

Batch examples(std::size_t count) {
  Batch batch;
  batch.id.resize(count);
  std::iota(batch.id.begin(), batch.id.end(), 0);
  return batch;
}

Spec Trials::tested() const {
  auto result = spec;
  if (!promise.with.empty())
    for (const auto& [key, value] : Spec::parse("_[" + promise.with + "]").arguments) result = result.with(key, value);
  return result;
}

void Trials::add(const std::string& where, const std::string& failure, const std::string& detail) {
  checks_.push_back({promise.text(), where, failure.empty() ? Check::Outcome::passed : Check::Outcome::failed,
                     failure.empty() ? detail : failure});
  any_ = true;
}

void Trials::skip(const std::string& where, const std::string& why) {
  checks_.push_back({promise.text(), where, Check::Outcome::skipped, why});
}

std::optional<Trial> Trials::make(const TestNetwork& network, const Spec& tested) {
  Trial made{tested, {}, {}, {}};
  made.model = std::make_unique<SmallModel<double>>(network.options, network.columns, network.loss, network.spread,
                                                    wants_posterior(made.spec), network.alike);
  if (network.off_policy) made.model->draw_by(0.7);
  if (const auto why = why_unsupported(made.spec, made.model->structure_with_policies()); !why.empty()) {
    skip(network.text(), why);
    return {};
  }
  made.estimator = make_estimator<double>(made.spec, made.model->structure_with_policies(), Key(1));
  made.truth = measurement::exact_reference(made.estimator->target(), *made.model, one_example(), trial_outcome_cap);
  return made;
}

void Trials::on_networks(const std::vector<TestNetwork>& where, const std::function<Finding(const Trial&)>& check) {
  for (const auto& network : where) {
    const auto made = make(network, tested());
    if (!made) continue;
    try {
      const auto [failure, detail] = check(*made);
      failure.empty() && detail.empty() ? skip(network.text(), "it does not apply to this number of options or columns")
                                        : add(network.text(), failure, detail);
    } catch (const NotExact& e) {
      skip(network.text(), e.what());
    }
  }
}

namespace {

const std::vector<TestNetwork> one_choice = {{2}, {3}, {3, 1, 3.0}};
/// The same, and one for an estimator that corrects for its behaviour policy.
const std::vector<TestNetwork> one_choice_off_policy = {
    one_choice[0], one_choice[1], one_choice[2], {.options = 3, .off_policy = true}};
const TestNetwork two_columns = {2, 2};
const std::vector<TestNetwork> networks = {one_choice[0], one_choice[1], one_choice[2], two_columns};
/// Models whose losses have no pathwise term.
const std::vector<TestNetwork> score_alone = {{.options = 2, .loss = {.path = false}},
                                              {.options = 2, .loss = {.level = 5, .linear = 9, .path = false}},
                                              {.options = 3, .spread = 1.5, .loss = {.path = false}},
                                              {.options = 2, .columns = 2, .loss = {.path = false, .per_column = true}}};
const std::vector<TestNetwork> sums = {{2, 2, 0.9, {.per_column = true}}, {2, 2, 3.0, {.per_column = true}}};

void judge(Trials& trials) {
  const auto& promise = trials.promise;
  const auto on = [&](const std::vector<TestNetwork>& where, Finding (*check)(const Promise&, const Trial&)) {
    trials.on_networks(where, [&promise, check](const Trial& trial) { return check(promise, trial); });
  };
  using Kind = Promise::Kind;
  switch (promise.kind) {
    case Kind::mean: return on(corrects_behaviour(trials.tested()) ? one_choice_off_policy : one_choice, mean);
    case Kind::advantages: return on(score_alone, advantages);
    case Kind::unbiased: return trials.on_networks(networks, unbiased);
    case Kind::variance: return on({two_columns}, variance);
    case Kind::same_moments: return on(networks, same_moments);
    case Kind::less_variance: return on(promise.loss == Promise::Loss::sum ? sums : networks, less_variance);
    case Kind::consistent: return consistent(trials);
    case Kind::limit: return limit(trials);
    case Kind::unshifted: return unshifted(trials);
    case Kind::noiseless: return noiseless(trials);
    case Kind::best_constant: return best_constant(trials);
    case Kind::descends_square: return trials.on_networks({one_choice[0], two_columns}, descends_square);
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
