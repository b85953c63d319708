// The modes of the exact posterior, against Bayes' rule over every set of options, with one forced run each.
#include "experiments/training/predictions.hpp"

#include <cmath>

#include "core/choice/handlers.hpp"
#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::exact_posterior_test {
using namespace training;

namespace {

const Dimensions dimensions{
    {"source_vocabulary", 6}, {"target_vocabulary", 5}, {"source_length", 4}, {"target_length", 3}, {"bos", 1}, {"eos", 2}};

Batch three_pairs() {
  Batch batch;
  batch.id = {4, 5, 6};
  batch.integers["source"] = shaped<int>({3, 4}, {3, 4, 5, 2, 4, 1, 0, 0, 5, 3, 3, 0});
  batch.integers["source_length"] = shaped<int>({3}, {4, 2, 3});
  batch.integers["target"] = shaped<int>({3, 3}, {3, 4, 2, 2, 0, 0, 4, 2, 0});
  batch.integers["target_length"] = shaped<int>({3}, {3, 1, 2});
  return batch;
}

/// p(z_t, y | x) up to a factor that does not depend on z_t: the first option is taken at all other steps.
double joint(const Model<double>& model, const Batch& one, int steps, int t, const std::vector<int>& options) {
  std::vector<std::vector<int>> all(steps, std::vector<int>(options.size(), 0));
  all[t] = options;
  Tape<double> tape;
  ForcedHandler<double> handler(all);
  Episode<double> episode(tape, handler, 1);
  model.run(one, episode);
  double loss = 0;
  for (const auto& cost : episode.costs()) loss += cost.loss.item();
  return std::exp(episode.path_log_probability(episode.steps()[t].choice.rows).item() - loss);
}

}  // namespace

TEST_CASE("the modes of the exact posterior follow Bayes' rule") {
  int differs = 0, visited = 0;
  for (const std::string spec : {"translator[embedding=3,hidden=4]", "translator[embedding=3,hidden=4,feed=soft,null=true]",
                                 "translator[embedding=3,hidden=4,heads=2]"}) {
    const auto model = lively(spec, dimensions);
    const auto batch = three_pairs();
    Tape<double> tape;
    const auto modes = exact_posterior_modes(tape, *model, batch);
    const int D = model->structure().sites[0].columns;
    GreedyHandler<double> greedy;
    Tape<double> other;
    Episode<double> prior(other, greedy, 3);
    model->run(batch, prior);
    REQUIRE(modes.size() == 3);
    for (int t = 0; t < 3; ++t) {
      for (int b = 0; b < 3; ++b) {
        const int T = batch.ints("target_length")(b);
        if (t >= T) continue;
        const int S = batch.ints("source_length")(b) + (spec.find("null") != std::string::npos);
        std::vector<std::vector<double>> p(D, std::vector<double>(S));
        for (int i = 0; i < S; ++i)
          for (int j = 0; j < (D == 2 ? S : 1); ++j) {
            const auto options = D == 2 ? std::vector<int>{i, j} : std::vector<int>{i};
            const double mass = joint(*model, batch.select({b}), T, t, options);
            p[0][i] += mass;
            if (D == 2) p[1][j] += mass;
          }
        for (int d = 0; d < D; ++d, ++visited) {
          const auto best = static_cast<int>(std::max_element(p[d].begin(), p[d].end()) - p[d].begin());
          CHECK(modes[t].at(b * D + d) == best);
          differs += prior.steps()[t].choice.option()[b * D + d] != best;
        }
      }
      CHECK(modes[t].size() == 3 * static_cast<std::size_t>(D));  // finished sentences have one option
    }
  }
  CHECK(visited == 24);
  CHECK(differs > 0);  // from the prior's
}

TEST_CASE("choices that change later ones have no exact posterior by themselves") {
  const auto sampled = lively("translator[embedding=3,hidden=4,feed=sampled]", dimensions);
  CHECK(why_no_exact_posterior(sampled->structure()).find("feed=none") != std::string::npos);
  const auto model = lively("translator[embedding=3,hidden=4]", dimensions);
  CHECK(why_no_exact_posterior(model->structure()) == "");
  const auto penalised =
      lively("ponderer[hidden=3,steps=3,ask=step,tau=0.1]", {{"puzzle_width", 2}, {"positions", 1}, {"labels", 2}});
  CHECK(why_no_exact_posterior(penalised->structure()) == "its losses are no log likelihoods, with beta or tau above 0");
}

}  // namespace hardgrad::testing::exact_posterior_test
