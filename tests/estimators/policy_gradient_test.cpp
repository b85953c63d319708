// policy_gradient: the critic's advantages by hand, and learned; samples of an older network against an enumeration of their own;
// targets of rewards against finite differences.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/tape.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "tests/support/central_slopes.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::policy_gradient_test {
using namespace measurement;
namespace {

const Dimensions prompts{{"words", 2}, {"longest", 3}, {"prompt_symbols", 2}};
Batch two_prompts() {
  Batch batch;
  batch.id = {3, 4};
  batch.integers["prompt"] = shaped<int>({2, 2}, {1, 0, 0, -1});
  batch.integers["answer"] = shaped<int>({2, 3}, {1, 0, 1, 0, -1, -1});
  return batch;
}
std::unique_ptr<Model<double>> writer(Key key = Key(5)) {
  return make_model<double>(Spec::parse("writer[hidden=3,embedding=2,reward=share]"), prompts, key);
}

/// The gradient of one estimate, and of the critic's loss; the critic's parameters are all `value`.
std::pair<std::vector<double>, std::vector<double>> drawn(const std::string& spec, double value) {
  const auto model = writer();
  const auto estimator = make_estimator<double>(Spec::parse(spec), model->structure(), Key(2));
  for (auto& parameter : estimator->own_parameters())
    for (double& x : parameter.value) x = value;
  Tape<double> tape;
  KeyedRandomness random(Key(9));
  const auto batch = two_prompts();
  const auto estimate = estimator->draw({tape, *model, batch, random, true});
  std::vector<double> gradient(model->parameters().size()), own(estimator->own_parameters().size());
  differentiate(estimate.surrogate, model->parameters(), gradient);
  if (estimate.own_loss) differentiate(estimate.own_loss, estimator->own_parameters(), own);
  return {gradient, own};
}

TEST_CASE(
    "policy_gradient: without a value, the critic's advantage is the return, and lambda=0 credits a choice with its own cost") {
  const auto whole = drawn("policy_gradient[samples=9,advantage=critic]", 0).first;
  CHECK(whole == drawn("policy_gradient[samples=9,advantage=none,reward_to_go=true]", 0).first);
  const auto next = drawn("policy_gradient[samples=9,advantage=critic,lambda=0]", 0).first;
  CHECK(largest_difference(whole, next) > 1e-3);
  // By hand: the surrogate sum_t c_t log p_t of the same draws.
  const auto model = writer();
  Tape<double> tape;
  KeyedRandomness random(Key(9));
  const auto batch = two_prompts();
  Sampled<double> sampled({tape, *model, batch, random}, 9);
  std::vector<std::vector<double>> own_cost;
  for (int t = 0; t < sampled.steps(); ++t) {
    own_cost.emplace_back(sampled.rows());
    for (const auto& cost : sampled.episode().costs())
      if (cost.rows->step == t)
        for (std::size_t r = 0; r < own_cost[t].size(); ++r) own_cost[t][r] += cost.loss.value().data[r];
  }
  std::vector<double> by_hand(model->parameters().size());
  differentiate(sampled.score(own_cost), model->parameters(), by_hand);
  CHECK(largest_difference(by_hand, next) < 1e-14);
}

TEST_CASE("policy_gradient: aggregation=batch_tokens divides by the words of all examples' samples") {
  const auto found = drawn("policy_gradient[samples=9,advantage=none,ratio=none,aggregation=batch_tokens]", 0).first;
  const auto model = writer();
  Tape<double> tape;
  KeyedRandomness random(Key(9));
  const auto batch = two_prompts();
  Sampled<double> sampled({tape, *model, batch, random}, 9);
  std::vector<double> words(2);  // of each example
  for (const auto& [question, choice] : sampled.episode().steps())
    for (std::size_t r = 0; r < sampled.rows(); ++r) words[r / 9] += question.chooses(choice.rows->parent[r]);
  REQUIRE(words[0] != words[1]);
  std::vector<std::vector<double>> shares;
  for (int t = 0; t < sampled.steps(); ++t) {
    shares.push_back(sampled.returns(t, Credit::whole));
    for (auto& f : shares.back()) f *= 18 / (words[0] + words[1]);
  }
  std::vector<double> by_hand(model->parameters().size());
  differentiate(sampled.score(shares), model->parameters(), by_hand);
  CHECK(largest_difference(by_hand, found) < 1e-14);
  CHECK(largest_difference(drawn("policy_gradient[samples=9,advantage=none,ratio=none,aggregation=tokens]", 0).first, found) >
        1e-4);
}

TEST_CASE("policy_gradient: top_entropy keeps the words of highest entropy of all examples' samples") {
  const auto found = drawn("policy_gradient[samples=9,advantage=none,ratio=none,top_entropy=0.4]", 0).first;
  const auto model = writer();
  Tape<double> tape;
  KeyedRandomness random(Key(9));
  const auto batch = two_prompts();
  Sampled<double> sampled({tape, *model, batch, random}, 9);
  std::vector<std::vector<double>> entropy, signal;
  std::vector<double> all;
  for (const auto& [question, choice] : sampled.episode().steps()) {
    const auto of_rows = question.distribution->entropy().value();
    auto& here = entropy.emplace_back();
    for (const int parent : choice.rows->parent) {
      here.push_back(of_rows.data[parent]);
      if (question.chooses(parent)) all.push_back(here.back());
    }
  }
  std::sort(all.begin(), all.end());
  const double place = 0.6 * static_cast<double>(all.size() - 1), below = std::floor(place);
  const auto i = static_cast<std::size_t>(below);
  const double least = all[i] + (place - below) * (all[i + 1] - all[i]);
  int kept[] = {0, 0}, left = 0;  // of each example
  for (int t = 0; t < sampled.steps(); ++t) {
    signal.push_back(sampled.returns(t, Credit::whole));
    for (std::size_t r = 0; r < sampled.rows(); ++r)
      if (entropy[t][r] >= least)
        kept[r / 9] += sampled.episode().steps()[t].question.chooses(sampled.episode().steps()[t].choice.rows->parent[r]);
      else
        signal[t][r] = 0, ++left;
  }
  REQUIRE((kept[0] != kept[1] && left > 5));  // examples by themselves would keep equal shares
  std::vector<double> by_hand(model->parameters().size());
  differentiate(sampled.score(signal), model->parameters(), by_hand);
  CHECK(largest_difference(by_hand, found) < 1e-14);
  CHECK(estimator_of("policy_gradient[top_entropy=0.4]", *model)->couples_examples());
}

TEST_CASE("policy_gradient: a value changes the advantages, and between the extremes lambda mixes them") {
  const auto at = [](const char* lambda) {
    return drawn(std::string("policy_gradient[samples=9,advantage=critic,hidden=4,lambda=") + lambda + "]", 0.3).first;
  };
  const auto one = at("1"), half = at("0.5"), none = at("0");
  CHECK(largest_difference(one, drawn("policy_gradient[samples=9,advantage=critic,hidden=4]", 0).first) > 1e-3);
  CHECK(largest_difference(one, half) > 1e-4);
  CHECK(largest_difference(half, none) > 1e-4);
}

TEST_CASE("policy_gradient: the critic's loss has a gradient, and no other advantage has one") {
  const auto own = drawn("policy_gradient[samples=9,advantage=critic,hidden=4]", 0.3).second;
  CHECK(own.size() > 0);
  CHECK(largest(own) > 1e-3);
  CHECK(drawn("policy_gradient[samples=9]", 0).second.empty());
}

/// All sequences of a writer on one prompt: the log probabilities of their words and their losses.
struct Sequence {
  std::vector<double> log_p;
  double loss = 0;
};
std::vector<Sequence> sequences(const Model<double>& model, const Batch& batch) {
  Tape<double> tape;
  EnumerateHandler<double> handler;
  Episode<double> episode(tape, handler, 1);
  model.run(batch, episode);
  const auto& steps = episode.steps();
  std::vector<Sequence> all(steps.back().choice.rows->size());
  for (std::size_t leaf = 0; leaf < all.size(); ++leaf) {
    int row = static_cast<int>(leaf);
    for (int t = static_cast<int>(steps.size()) - 1; t >= 0; --t) {
      all[leaf].log_p.push_back(episode.log_probability(t).value().data[row]);
      for (const auto& cost : episode.costs())
        if (cost.rows->step == t) all[leaf].loss += cost.loss.value().data[row];
      row = steps[t].choice.rows->parent[row];
    }
  }
  return all;
}

TEST_CASE("policy_gradient: samples of an older network have the exact expected gradient of each ratio") {
  const auto model = writer();
  const std::shared_ptr older = writer(Key(6));
  model->set_policies({.behaviour = older});
  const auto batch = two_prompts().select({0});
  const auto drawn_by = sequences(*older, batch);
  // Without a baseline, the mean is the gradient of sum_y q(y) f(y) w(y), where w is linear in the ratios of p and q.
  const auto by_hand = [&](const std::string& ratio) {
    const auto value = [&] {
      const auto now = sequences(*model, batch);
      double total = 0;
      for (std::size_t y = 0; y < now.size(); ++y) {
        double q = 0, all = 0, tokens = 0;
        for (std::size_t t = 0; t < now[y].log_p.size(); ++t) {
          const double l = now[y].log_p[t] - drawn_by[y].log_p[t];
          q += drawn_by[y].log_p[t];
          all += l;
          tokens += std::exp(l);
        }
        total += std::exp(q) * now[y].loss * (ratio == "sequence" ? std::exp(all) : tokens);
      }
      return total;
    };
    return central_slopes(model->parameters(), value);
  };
  const auto mean = [&](const std::string& settings) {
    return mean_of(*estimator_of("policy_gradient[samples=1,advantage=none," + settings + "]", *model), *model, batch);
  };
  const auto truth = exact_reference("expected_loss", *model, batch, 1e6).gradient;
  CHECK(largest_difference(mean("ratio=sequence"), by_hand("sequence")) < 1e-8);
  CHECK(largest_difference(mean("ratio=token"), by_hand("token")) < 1e-8);
  CHECK(largest_difference(mean("ratio=sequence"), truth) < 1e-12);
  CHECK(largest_difference(mean("ratio=token"), truth) > 1e-3);
  CHECK(largest_difference(mean("ratio=none"), truth) > 1e-3);  // as if the samples were its own
  // Groups of samples, and the cost of the run that draws.
  const auto pairs = estimator_of("policy_gradient[samples=2]", *model);
  CHECK(largest_difference(mean_of(*pairs, *model, batch), truth) < 1e-12);
  const std::vector<std::vector<double>> zero(1, std::vector<double>(truth.size()));
  CHECK(exact_moments(*pairs, *model, batch, zero, 1e6).cost.rows == doctest::Approx(2 * 2 * 3));
}

TEST_CASE("targets of rewards: gradients are finite differences, and the likelihood needs rewards") {
  const auto model = writer();
  const auto batch = two_prompts();
  for (const Target target : {"success_likelihood", "best_of[samples=1]", "best_of[samples=4]"}) {
    CAPTURE(target.text());
    const auto truth = exact_reference(target, *model, batch, 1e6);
    CHECK(largest_difference(truth.gradient, finite_differences(target, *model, batch)) < 1e-7);
    if (target.text() == "best_of[samples=1]")
      CHECK(largest_difference(truth.gradient, exact_reference("expected_loss", *model, batch, 1e6).gradient) < 1e-14);
  }
  const auto bits = model_of("bits[bits=2]");
  const auto one = one_example();
  ReferenceGradients<double> references(*bits, one, 1e6);
  CHECK(references.of("success_likelihood") == nullptr);
  CHECK(references.why().find("no rewards") != std::string::npos);
  CHECK(why_unsupported(Spec::parse("policy_gradient[preset=maxrl]"), bits->structure()).find("no rewards") !=
        std::string::npos);
  CHECK(why_unsupported(Spec::parse("policy_gradient[preset=maxrl]"), model->structure()).empty());
}

}  // namespace
}  // namespace hardgrad::testing::policy_gradient_test
