#include "experiments/verification/promise_trials.hpp"

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

std::optional<Trial> Trials::make(const Ground& ground, const Spec& tested) {
  Trial made{tested, {}, {}, {}};
  made.model = std::make_unique<SmallModel<double>>(ground.options, ground.columns, ground.loss, ground.spread,
                                                    wants_posterior(made.spec), ground.alike);
  if (ground.off_policy) made.model->draw_by(0.7);
  if (const auto why = why_unsupported(made.spec, made.model->structure_with_policies()); !why.empty()) {
    skip(ground.text(), why);
    return {};
  }
  made.estimator = make_estimator<double>(made.spec, made.model->structure_with_policies(), Key(1));
  made.truth = measurement::exact_truth(made.estimator->target(), *made.model, one_example(), trial_outcome_cap);
  return made;
}

void Trials::on_grounds(const std::vector<Ground>& where, const std::function<Finding(const Trial&)>& check) {
  for (const auto& ground : where) {
    const auto made = make(ground, tested());
    if (!made) continue;
    try {
      const auto [failure, detail] = check(*made);
      failure.empty() && detail.empty() ? skip(ground.text(), "it does not apply to this number of options or columns")
                                        : add(ground.text(), failure, detail);
    } catch (const NotExact& e) {
      skip(ground.text(), e.what());
    }
  }
}

}  // namespace hardgrad::verification
