// An estimator's hint must agree with its surrogate: the slopes in the costs, up to one factor.
#include <doctest/doctest.h>

#include <cmath>

#include "core/estimator/estimator.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::testing::cost_weights_test {
using namespace tasks;
namespace {

/// Sets the weights of the options of one asking row, given their losses.
void share_out(const Rows& rows, const double* loss, std::vector<double>& weight) {
  std::vector<double> total(rows.origin->size());
  for (std::size_t r = 0; r < weight.size(); ++r) total[rows.parent[r]] += weight[r] *= std::exp(-loss[r]);
  for (std::size_t r = 0; r < weight.size(); ++r) weight[r] /= total[rows.parent[r]];
}

/// Largest relative deviation of slope / hint from its first value; -1 without a hint.
double deviation(const std::string& name, const Model<double>& model, const Batch& batch) {
  const auto estimator = make_estimator<double>(Spec::parse(name), model.structure(), Key(4));
  Tape<double> tape;
  KeyedRandomness random(Key(3));
  const auto estimate = estimator->draw({tape, model, batch, random});
  if (!estimate.episode || estimate.episode->cost_weights(estimate.episode->root()).empty()) return -1;
  for (const auto& cost : estimate.episode->costs()) tape.watch(cost.loss);
  tape.backward(estimate.surrogate);
  double factor = 0, worst = 0;
  for (const auto& cost : estimate.episode->costs()) {
    auto hinted = estimate.episode->cost_weights(cost.rows);
    if (estimate.episode->hinted() == CostWeights::posterior) share_out(*cost.rows, cost.loss.value().data, hinted);
    const auto slope = tape.gradient(cost.loss);
    for (std::size_t r = 0; r < hinted.size(); ++r) {
      if (factor == 0) factor = slope.data[r] / hinted[r];
      worst = std::max(worst, std::abs(slope.data[r] - factor * hinted[r]) / std::abs(factor * hinted[r]));
    }
  }
  return worst;
}

TEST_CASE("hinted weights of costs are the surrogate's slopes, for every estimator with hints") {
  for (const std::string feed : {"none", "soft", "sampled"}) {
    const auto task = make_task(Spec::parse("translation[examples=40,words=3,max_length=3]"), Key(1));
    const auto model =
        make_model<double>(Spec::parse("translator[embedding=5,hidden=4,feed=" + feed + "]"), task->dimensions(), Key(2), true);
    const auto batch = task->batch(Split::train, {0, 1, 2, 3});
    int announcing = 0, visited = 0;
    for (const auto& name : Estimators::instance().names()) {
      CAPTURE(feed);
      CAPTURE(name);
      if (!why_unsupported(Spec::parse(name), model->structure()).empty()) continue;
      const double worst = deviation(name, *model, batch);
      CHECK(worst < 1e-10);
      announcing += worst >= 0;
      ++visited;
    }
    const int sparse_mixer = feed == "sampled";  // needs choices that feed no later ones
    CHECK(visited == static_cast<int>(Estimators::instance().names().size()) - 10 -
                         sparse_mixer);  // 7 for bits, 2 for numbers, 1 for codes
    for (const auto* name : {"exact", "soft", "reinforce", "rloo", "entropy_regularised"}) {
      CAPTURE(name);
      CHECK(deviation(name, *model, batch) >= 0);
    }
    CHECK(announcing >= 5);
    if (feed != "sampled") CHECK(deviation("exact_marginal", *model, batch) >= 0);
  }
}

}  // namespace
}  // namespace hardgrad::testing::cost_weights_test
