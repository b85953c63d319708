// What an estimator has learned is saved and taken up again: a run in two parts is the run in one.
#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>

#include "experiments/storage/checkpoint.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::testing {
namespace {

const RunKeys keys{Key(1), Key(2), Key(3)};

Training<double> fresh(const std::string& estimator, const TrainSettings& settings) {
  return prepare<double>(make_task(Spec::parse("bits"), Key(4)), Spec::parse("bits[bits=2,t=0.3;0.499]"),
                         Spec::parse(estimator), settings, keys);
}

template <class Set>
std::vector<double> values(const Set& set) {
  std::vector<double> all;
  for (const auto& p : set) all.insert(all.end(), p.value.data.begin(), p.value.data.end());
  return all;
}

TEST_CASE("a run that is saved and resumed is the run that was not interrupted, with all that estimators learn") {
  const auto path = std::filesystem::temp_directory_path() / ("hardgrad_resume_" + std::to_string(getpid()) + ".h5");
  for (const auto* spec :
       {"moving_baseline", "nvil[samples=2]", "rebar", "relax", "relax[relaxed_model=true]", "double_cv", "rodeo"}) {
    CAPTURE(spec);
    TrainSettings settings;
    settings.steps = 60;
    settings.batch = 1;
    settings.own_learning_rate = 0.01;
    auto whole = fresh(spec, settings);
    train(whole, settings, keys);
    auto half = settings;
    half.steps = 25;
    auto first = fresh(spec, half);
    const auto at_start = values(first.estimator->own_parameters());
    train(first, half, keys);
    save_checkpoint(path, checkpoint_of(first));
    auto second = fresh(spec, settings);
    restore(load_checkpoint(path), second, "checkpoint");
    CHECK(second.step == 25);
    CHECK(second.estimator->state() == first.estimator->state());
    if (!at_start.empty()) CHECK(values(second.estimator->own_parameters()) != at_start);  // something was learned
    train(second, settings, keys);
    CHECK(values(second.model->parameters()) == values(whole.model->parameters()));
    CHECK(values(second.estimator->own_parameters()) == values(whole.estimator->own_parameters()));
    CHECK(second.estimator->state() == whole.estimator->state());
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace hardgrad::testing
