// All learned state of an estimator is saved and restored: training that is stopped after each step equals uninterrupted
// training. Checked for all estimators.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/partial_cell.hpp"
#include "experiments/training/adaptation.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::testing::resume_test {
using namespace measurement;
using namespace storage;
using namespace tasks;
using namespace training;
namespace {

const RunKeys keys{Key(1), Key(2), Key(3)};

TrainSettings settings_of(int steps) {
  TrainSettings settings;
  settings.steps = steps;
  settings.batch = 1;
  settings.log_every = 3;
  settings.optimizer.learning_rate = 0.1;
  settings.own_learning_rate = 0.01;
  settings.evaluate_examples = 1;
  return settings;
}

struct Case {
  const char *task, *model;
};
const Case cases[] = {{"bits", "bits[bits=2,t=0.3;0.499]"},
                      {"gaussians", "gaussians"},
                      {"subsets", "subsets[options=4,picks=2]"},
                      {"images[size=8,examples=40,bound_samples=0]", "codebook[vectors=2,codes=3,width=2,hidden=4]"},
                      {"qa[stories=12,people=2,places=3,memory=6]", "memory_reader[embedding=4,hops=1]"}};

template <class Set>
std::vector<double> values(const Set& set) {
  std::vector<double> all;
  for (const auto& p : set) all.insert(all.end(), p.value.begin(), p.value.end());
  return all;
}

/// All values that training changes.
struct Outcome {
  std::vector<double> parameters, own, state, optimizer, own_optimizer, losses;
  bool operator==(const Outcome&) const = default;
};
Outcome outcome_of(const Training<double>& training, const TrainResult& result) {
  Outcome outcome{.parameters = values(training.model->parameters()),
                  .own = values(training.estimator->own_parameters()),
                  .state = training.estimator->state(),
                  .optimizer = training.optimizer->state(),
                  .own_optimizer = training.own_optimizer->state(),
                  .losses = {}};
  for (const auto& point : result.log)
    outcome.losses.insert(outcome.losses.end(), {point.loss, point.gradient_norm, point.rows});
  for (const auto& point : result.evaluations)
    for (const auto& [name, loss] : point.losses) outcome.losses.push_back(loss);
  return outcome;
}

template <class Fresh>
Outcome in_one(const Fresh& fresh, const TrainSettings& settings) {
  auto training = fresh();
  const auto result = train(training, settings, keys);
  return outcome_of(training, result);
}

/// Stopped after each step, and continued by a new training object.
template <class Fresh>
Outcome in_pieces(const Fresh& fresh, const TrainSettings& settings, int& pieces) {
  std::optional<PartialCell> saved;
  for (pieces = 1;; ++pieces) {
    Training<double> training = fresh();
    if (saved) resume(*saved, training, "saved");
    const int begun = training.step;
    try {
      const auto result = train(training, settings, keys, [&] { return training.step > begun; });
      return outcome_of(training, result);
    } catch (const Interrupted&) {
      saved.emplace();
      snapshot(training, *saved);
    }
  }
}

/// The estimator as declared, and with each of its flags inverted.
std::vector<std::string> specs_of(const EstimatorEntry& entry) {
  std::vector<std::string> specs = {entry.name};
  for (const auto& p : entry.parameters)
    if (p.type == ParameterInfo::Type::boolean)
      specs.push_back(entry.name + "[" + p.name + "=" + (std::get<bool>(p.fallback) ? "false" : "true") + "]");
  return specs;
}

TEST_CASE("every estimator, stopped after each step, ends as without interruption") {
  const auto settings = settings_of(7);
  std::vector<std::shared_ptr<const Task>> tasks;
  for (const auto& at : cases) tasks.push_back(make_task(Spec::parse(at.task), Key(4)));
  std::set<std::string> tried, learning;
  std::size_t trainings = 0;
  for (const auto& name : Estimators::instance().names())
    for (const auto& text : specs_of(Estimators::instance().at(name))) {
      CAPTURE(text);
      const auto spec = Spec::parse(text);
      for (std::size_t i = 0; i < tasks.size(); ++i) {
        const auto fresh = [&] { return prepare<double>(tasks[i], Spec::parse(cases[i].model), spec, settings, keys); };
        try {
          if (learns(*fresh().estimator)) learning.insert(name);
        } catch (const UsageError&) {  // not supported on this network, or an invalid combination
          continue;
        }
        int pieces = 0;
        CHECK(in_one(fresh, settings) == in_pieces(fresh, settings, pieces));
        CHECK(pieces == settings.steps + 1);
        tried.insert(name);
        ++trainings;
        break;
      }
    }
  for (const auto& name : Estimators::instance().names()) {
    CAPTURE(name);
    CHECK(tried.contains(name));
  }
  CHECK(trainings > tried.size());
  for (const auto* name : {"moving_baseline", "nvil", "rebar", "relax", "double_cv", "rodeo"}) CHECK(learning.contains(name));
}

/// A wrong variant: it learns, but does not save its state.
class Secretive final : public Estimator<double> {
 public:
  explicit Secretive(std::unique_ptr<Estimator<double>> inner) : inner_(std::move(inner)) { aim(inner_->target()); }
  void learn(const Estimate<double>& estimate) override { inner_->learn(estimate); }

 private:
  Estimate<double> estimate(const Problem<double>& problem) const override { return inner_->draw(problem); }
  std::unique_ptr<Estimator<double>> inner_;
};

TEST_CASE("an average that is not saved is detected") {
  const auto settings = settings_of(7);
  const std::shared_ptr<const Task> task = make_task(Spec::parse(cases[0].task), Key(4));
  const auto fresh = [&](bool secretive) {
    auto training = prepare<double>(task, Spec::parse(cases[0].model), Spec::parse("moving_baseline"), settings, keys);
    if (secretive) training.estimator = std::make_unique<Secretive>(std::move(training.estimator));
    return training;
  };
  int pieces = 0;
  const auto honest = [&] { return fresh(false); };
  const auto twin = [&] { return fresh(true); };
  CHECK(in_one(honest, settings) == in_pieces(honest, settings, pieces));
  CHECK(in_one(twin, settings).parameters == in_one(honest, settings).parameters);
  CHECK(in_one(twin, settings).parameters != in_pieces(twin, settings, pieces).parameters);
}

}  // namespace
}  // namespace hardgrad::testing::resume_test
