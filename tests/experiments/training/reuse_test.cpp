// train.reuse: several steps on one batch, with the samples of the network at the first of them.
#include <doctest/doctest.h>

#include "core/autodiff/tape.hpp"
#include "core/support/machine.hpp"
#include "experiments/training/adaptation.hpp"
#include "experiments/training/schedule.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::testing::reuse_test {
using namespace tasks;
using namespace training;
namespace {

const RunKeys keys{Key(1) / "init", Key(1) / "order", Key(1) / "noise"};

std::shared_ptr<const Task> prompts() { return make_task(Spec::parse("answers[size=2,examples=60]"), Key(2)); }
TrainSettings settings(int reuse) {
  TrainSettings s;
  s.steps = 7;
  s.batch = 8;
  s.reuse = reuse;
  s.log_every = 1;
  s.optimizer.learning_rate = 0.1;
  return s;
}
Training<float> fresh(int reuse, const std::string& estimator, const std::string& model = "writer[hidden=5,embedding=4]") {
  return prepare<float>(prompts(), Spec::parse(model), Spec::parse(estimator), settings(reuse), keys);
}
template <class T>
std::vector<T> values(const ParameterSet<T>& set) {
  std::vector<T> all;
  for (const auto& p : set) all.insert(all.end(), p.value.begin(), p.value.end());
  return all;
}

/// The same training, written out: the words of each step, and the parameters at the end.
struct ByHand {
  std::vector<std::vector<int>> words;
  std::vector<float> end;
};
ByHand by_hand(int reuse, const std::string& spec) {
  auto training = fresh(reuse, spec);
  const std::shared_ptr at_first = fresh(1, spec).model;
  ByHand found;
  Batches batches(*training.task, 8, keys.order);
  std::vector<float> gradient(training.model->parameters().size()), own;
  for (int step = 0; step < 7; ++step) {
    const int first = step / reuse * reuse;
    if (step == first) {
      auto from = training.model->parameters().begin();
      for (auto& p : at_first->parameters()) p.value.storage() = (from++)->value.storage();
    }
    Tape<float> tape;
    KeyedRandomness random(keys.noise / "train" / static_cast<std::uint64_t>(first));
    const auto batch = batches.at(first / reuse);
    Problem<float> problem{tape, *training.model, batch, random, true};
    training.model->set_policies({.behaviour = step != first ? at_first : nullptr});
    const auto estimate = training.estimator->draw(problem);
    std::vector<int> words;
    for (const auto& [question, choice] : estimate.episode->steps())
      for (std::size_t i = 0; i < choice.picked().size(); ++i) words.push_back(choice.picked()[i]);
    found.words.push_back(words);
    differentiate(estimate.surrogate, training.model->parameters(), gradient);
    learn_from(estimate, *training.estimator, *training.own_optimizer, own);
    training.optimizer->step(training.model->parameters(), gradient);
  }
  found.end = values(training.model->parameters());
  return found;
}

}  // namespace

TEST_CASE("reuse: a training equals its own steps, bit for bit, and a batch keeps its samples") {
  for (const std::string spec : {"policy_gradient[samples=4]", "policy_gradient[samples=4,preset=ppo]"})
    for (const int reuse : {1, 3}) {
      CAPTURE(spec);
      CAPTURE(reuse);
      auto training = fresh(reuse, spec);
      const auto result = train(training, settings(reuse), keys);
      const auto wanted = by_hand(reuse, spec);
      CHECK(values(training.model->parameters()) == wanted.end);
      for (int step = 1; step < 7; ++step) CHECK((wanted.words[step] == wanted.words[step - 1]) == (step % reuse != 0));
      // A run of the older network counts, at all steps but the first of a batch.
      const double once = result.log[0].rows;
      CHECK(result.rows == once * (reuse == 1 ? 7 : 3 + 2 * 4));
    }
}

TEST_CASE("reuse: refused with a reason") {
  const auto why = [](const std::string& estimator, const std::string& model = "writer") -> std::string {
    try {
      fresh(2, estimator, model);
    } catch (const Unsupported& refused) {
      return refused.what();
    }
    return {};
  };
  CHECK(why("rloo[samples=2]") ==
        "rloo[samples=2] does not correct for samples of an older network: take policy_gradient, or train.reuse = 1");
  CHECK(why("policy_gradient", "writer[drift=1]").find("a behaviour policy of its own") != std::string::npos);
  CHECK(why("policy_gradient").empty());
}

}  // namespace hardgrad::testing::reuse_test
