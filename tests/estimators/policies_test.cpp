// Other networks as behaviour and reference policies (Model::Policies): against the writer's own policies with the same values, and
// against an enumeration of both networks by itself.
#include <doctest/doctest.h>

#include <cmath>

#include "core/choice/handlers.hpp"
#include "tests/core/models/given_choices.hpp"
#include "tests/support/central_slopes.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::policies_test {
using namespace measurement;
namespace {

const Dimensions prompts{{"words", 2}, {"longest", 2}, {"prompt_symbols", 2}};
const Dimensions sentences{
    {"source_vocabulary", 6}, {"target_vocabulary", 3}, {"source_length", 2}, {"target_length", 2}, {"bos", 1}, {"eos", 2}};
const Dimensions pictures{{"cells", 2},         {"features", 2}, {"target_vocabulary", 3},
                          {"target_length", 2}, {"bos", 1},      {"eos", 2}};

Batch one_of(const Dimensions& dimensions) {
  Batch batch;
  batch.id = {3};
  if (dimensions.contains("words")) {
    batch.integers["prompt"] = shaped<int>({1, 2}, {1, 0});
    batch.integers["answer"] = shaped<int>({1, 2}, {1, 0});
    return batch;
  }
  batch.integers["source"] = shaped<int>({1, 2}, {3, 4});
  batch.integers["source_length"] = shaped<int>({1}, {2});
  batch.integers["target"] = shaped<int>({1, 2}, {1, 2});
  batch.integers["target_length"] = shaped<int>({1}, {2});
  if (dimensions.contains("features")) batch.reals["features"] = shaped<double>({1, 2, 2}, {0.3, -0.2, 0.5, 0.1});
  return batch;
}

struct Case {
  std::string model;
  const Dimensions& dimensions;
  std::shared_ptr<Model<double>> made(int key) const {
    auto network = lively(model, dimensions);
    int i = 0;
    for (auto& p : network->parameters())
      for (double& x : p.value) x += 0.4 * std::sin(key * ++i);
    return network;
  }
};

/// All complete sets of choices: log probabilities and losses, in one order for all networks of a case.
struct Leaves {
  std::vector<double> log_p, loss;
};
Leaves leaves(const Model<double>& model, const Batch& batch) {
  Tape<double> tape;
  EnumerateHandler<double> handler;
  Episode<double> episode(tape, handler, 1);
  model.run(batch, episode);
  const auto& rows = episode.steps().back().choice.rows;
  Leaves all{std::vector<double>(rows->size()), std::vector<double>(rows->size())};
  const auto log_p = episode.path_log_probability(rows).value();
  for (std::size_t leaf = 0; leaf < rows->size(); ++leaf) {
    all.log_p[leaf] = log_p.data[leaf];
    int row = static_cast<int>(leaf);
    for (auto* at = rows.get();; row = at->parent[row], at = at->origin.get()) {
      for (const auto& cost : episode.costs())
        if (cost.rows.get() == at) all.loss[leaf] += cost.loss.value().data[row];
      if (at->is_root()) break;
    }
  }
  return all;
}

/// Finite differences of E[f] + beta KL(p || r) by both enumerations.
std::vector<double> by_hand(Model<double>& model, const Model<double>& reference, const Batch& batch, double beta) {
  const auto r = leaves(reference, batch).log_p;
  const auto value = [&] {
    const auto p = leaves(model, batch);
    double sum = 0;
    for (std::size_t i = 0; i < r.size(); ++i) sum += std::exp(p.log_p[i]) * (p.loss[i] + beta * (p.log_p[i] - r[i]));
    return sum;
  };
  return central_slopes(model.parameters(), value);
}

}  // namespace

TEST_CASE("policies: the gradient near another network is that of both enumerations, with words and with attention") {
  const std::string sizes = "[embedding=2,hidden=2,";
  for (const Case& of :
       {Case{"writer" + sizes + "reward=share]", prompts}, Case{"writer[policy=attention,hidden=2]", prompts},
        Case{"translator" + sizes + "words=sampled,feed=sampled]", sentences},
        Case{"translator" + sizes + "words=sampled,reward=share,attention=none,feed=soft]", sentences},
        Case{"translator" + sizes + "feed=sampled]", sentences}, Case{"captioner" + sizes + "words=sampled]", pictures}}) {
    CAPTURE(of.model);
    const auto model = of.made(1);
    const auto reference = of.made(2);
    const auto batch = one_of(of.dimensions);
    CHECK(why_unsupported(Spec::parse("rloo[target=near_reference]"), model->structure_with_policies()) ==
          Structure::lacks_reference);
    model->set_policies({.reference = reference});
    const auto truth = exact_reference("near_reference[beta=0.7]", *model, batch, 1e6).gradient;
    CHECK(largest_difference(truth, by_hand(*model, *reference, batch, 0.7)) < 1e-8);
    CHECK(largest_difference(truth, exact_reference("expected_loss", *model, batch, 1e6).gradient) > 1e-4);
    for (const std::string spec : {"exact[target=near_reference,near=0.7]", "reinforce[target=near_reference,near=0.7]",
                                   "policy_gradient[samples=1,advantage=none,divergence=k1,beta=0.7]",
                                   "policy_gradient[samples=1,advantage=none,divergence=exact,beta=0.7]"}) {
      CAPTURE(spec);
      CHECK(largest_difference(mean_of(*estimator_of(spec, *model), *model, batch), truth) < 1e-11);
    }
    const auto in_loss = estimator_of("policy_gradient[samples=1,advantage=none,divergence=k3,beta=0.7,where=loss]", *model);
    CHECK(largest_difference(mean_of(*in_loss, *model, batch), truth) > 1e-7);
    model->set_policies({.reference = of.made(1)});  // itself: no divergence
    CHECK(largest_difference(exact_reference("near_reference[beta=0.7]", *model, batch, 1e6).gradient,
                             exact_reference("expected_loss", *model, batch, 1e6).gradient) < 1e-12);
  }
}

TEST_CASE("policies: samples of another network have the mean of the network's own law only with ratios") {
  const std::string sizes = "[embedding=2,hidden=2,";
  for (const Case& of : {Case{"translator" + sizes + "words=sampled,feed=sampled]", sentences},
                         Case{"translator" + sizes + "feed=sampled]", sentences}}) {
    CAPTURE(of.model);
    const auto model = of.made(1);
    const auto batch = one_of(of.dimensions);
    model->set_policies({.behaviour = of.made(2), .reference = of.made(3)});
    const auto truth = exact_reference("near_reference[beta=0.7]", *model, batch, 1e6).gradient;
    const auto mean = [&](const std::string& more) {
      const auto spec = "policy_gradient[samples=1,advantage=none,divergence=k1,beta=0.7" + more + "]";
      return mean_of(*estimator_of(spec, *model), *model, batch);
    };
    CHECK(largest_difference(mean(""), truth) < 1e-11);
    CHECK(largest_difference(mean(",ratio=none"), truth) > 1e-4);
  }
}

TEST_CASE("policies: another network is as the writer's own policy with the same parameters") {
  const std::string plain = "hidden=3,embedding=2,reward=share";
  const auto batch = one_of(prompts);
  const auto own = lively("writer[" + plain + ",drift=0.5,reference=initial,away=0.7]", prompts);
  const std::shared_ptr behaviour = lively("writer[" + plain + "]", prompts),
                        reference = lively("writer[" + plain + "]", prompts);
  const auto others = lively("writer[" + plain + "]", prompts);
  for (const auto& [name, value] : own->constants()) {
    const auto parameter = name.substr(name.find('.') + 1);
    for (std::size_t i = 0; i < value.size(); ++i) {
      auto &b = behaviour->parameters().find(parameter)->value.flat(i),
           &r = reference->parameters().find(parameter)->value.flat(i);
      if (name.starts_with("behaviour.")) b = own->parameters().find(parameter)->value.flat(i) + 0.5 * value.flat(i);
      if (name.starts_with("initial.")) r = value.flat(i);
      if (name.starts_with("away.")) r += 0.7 * value.flat(i);
    }
  }
  others->set_policies({.behaviour = behaviour, .reference = reference});
  for (const std::string spec : {"policy_gradient[samples=2,preset=grpo,divergence=k3,where=loss,beta=0.3]",
                                 "policy_gradient[samples=2,divergence=exact,beta=0.3]",
                                 "rloo[samples=2,target=near_reference]", "straight_through[target=near_reference]"}) {
    CAPTURE(spec);
    CHECK(largest_difference(mean_of(*estimator_of(spec, *others), *others, batch),
                             mean_of(*estimator_of(spec, *own), *own, batch)) < 1e-12);
  }
}

}  // namespace hardgrad::testing::policies_test
