// Heads of attention: several choices per target word. If the context reaches only the output, words become rows and heads
// become columns, so that the exact gradient costs T S^H rows, not S^(T H).
#include <doctest/doctest.h>

#include "core/autodiff/elementwise.hpp"
#include "core/choice/handlers.hpp"
#include "tests/core/models/model_check.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::heads_test {
using namespace measurement;
namespace {

constexpr int heads = 2, positions = 3, words = 2;

std::unique_ptr<Model<double>> translator(const std::string& score, const std::string& feed, bool posterior = false) {
  return testing::lively("translator[embedding=2,hidden=4,heads=2,score=" + score + ",feed=" + feed + "]",
                         {{"source_vocabulary", 5},
                          {"target_vocabulary", 4},
                          {"source_length", positions},
                          {"target_length", words},
                          {"bos", 1},
                          {"eos", 2}},
                         posterior);
}

Batch one_sentence() {
  Batch batch;
  batch.id = {4};
  batch.integers["source"] = shaped<int>({1, positions}, {3, 2, 4});
  batch.integers["source_length"] = shaped<int>({1}, {positions});
  batch.integers["target"] = shaped<int>({1, words}, {3, 2});
  batch.integers["target_length"] = shaped<int>({1}, {words});
  return batch;
}

std::size_t rows_of_exact(const Model<double>& model, const Batch& batch) {
  return Drawn("exact", model, batch).estimate.rows();
}

/// E[f] and its gradient: every path is forced in a separate run, weighted by its probability, and differentiated.
struct Sum {
  double value = 0;
  std::vector<double> gradient;
};
Sum over_every_path(const Model<double>& model, const Batch& batch) {
  Sum sum{0, std::vector<double>(model.parameters().size())};
  for (const auto& path : testing::every_path(std::vector<int>(words * heads, positions))) {
    testing::Options forced(words);
    for (std::size_t i = 0; i < path.size(); ++i) forced[i / heads].push_back(path[i]);
    ForcedHandler<double> handler(forced);
    Tape<double> tape;
    Episode<double> episode(tape, handler, 1);
    model.run(batch, episode);
    auto log_p = tape.constant(1, 1), loss = tape.constant(1, 1);
    for (int t = 0; t < words; ++t) log_p = add(log_p, episode.log_probability(t));
    for (const auto& cost : episode.costs()) loss = add(loss, cost.loss);
    const auto term = multiply(exp(log_p), loss);
    sum.value += term.item();
    tape.backward(term);
    tape.add_gradient(model.parameters(), std::span<double>(sum.gradient));
  }
  return sum;
}

TEST_CASE("heads: exact visits the sets of one word at a time if the context only reaches the output") {
  for (const auto* score : {"additive", "dot", "general", "scaled_dot"})
    for (const auto* feed : {"none", "soft", "sampled"}) {
      CAPTURE(score);
      CAPTURE(feed);
      const auto model = translator(score, feed);
      const auto batch = one_sentence();
      const bool factorised = std::string_view(feed) != "sampled";
      CHECK(model->structure().steps_apart() == factorised);
      CHECK(rows_of_exact(*model, batch) == (factorised ? 2 * 9 : 9 + 81));
      const auto sum = over_every_path(*model, batch);
      CHECK(exact_reference("expected_loss", *model, batch, 1e6).value == doctest::Approx(sum.value).epsilon(1e-12));
      CHECK(largest_difference(exact_reference("expected_loss", *model, batch, 1e6).gradient, sum.gradient) < 1e-12);
      CHECK(largest_difference(gradient_of(*estimator_of("exact", *model), *model, batch, Key(1)), sum.gradient) < 1e-12);
    }
}

TEST_CASE("heads: estimators for several choices have the gradient of the sum over every path as mean") {
  const auto batch = one_sentence();
  for (const auto* feed : {"none", "sampled"}) {
    const auto model = translator("scaled_dot", feed, true);
    for (const auto* spec : {"reinforce", "soft_baseline", "soft", "exact_marginal", "self_critic", "reinforce[target=elbo]"}) {
      CAPTURE(feed);
      CAPTURE(spec);
      CHECK(bias_of(spec, *model, batch) < 1e-10);
    }
  }
}

}  // namespace
}  // namespace hardgrad::testing::heads_test
