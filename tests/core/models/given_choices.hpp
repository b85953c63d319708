// The checks that every model with given choices passes: gradients, independent rows, and the expectation over all outcomes.
#pragma once

#include <algorithm>

#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing {

/// A small model, its batch, and given choices for it.
struct Given {
  std::string spec;
  Dimensions dimensions;
  Batch batch;
  Options forced;
  int columns = 1;                    ///< simultaneous choices
  std::vector<Batch> padded = {};     ///< the batch with other padding
  std::string dependence = {};        ///< as Structure::dependence
  std::vector<double> outcomes = {};  ///< [B] sets of choices of each example; empty: not enumerated
  bool posterior = true;              ///< false: the model has no learned posterior beside its choices
  decltype(&lively) make = lively;    ///< (spec, dimensions, posterior)
  Batch (*alone)(const Batch&, int) = [](const Batch& all, int b) { return all.select({b}); };  ///< one example
};
constexpr double enumerable = 1100;  ///< outcomes of an example

/// Checks gradients with every kind of answer: the given choices, with one row and with two per example; weights; expected
/// weights; every outcome (unless they are too many); two rows under the posterior, with its divergence. A missing term of the
/// gradient must be detected.
inline void check_gradients(const Given& given) {
  const auto model = given.make(given.spec, given.dimensions, false);
  const auto& batch = given.batch;
  const auto once = [&] { return std::make_unique<ForcedHandler<double>>(given.forced); };
  const auto twice = [&] { return std::make_unique<ForcedHandler<double>>(copied(given.forced, 2, given.columns)); };
  check_gradient("forced", *model, batch, once);
  check_gradient("two rows each", *model, batch, twice);
  check_gradient("weights", *model, batch, [&] { return std::make_unique<ForcedWeights>(given.forced, 0.6); });
  check_gradient("expected", *model, batch, [] { return std::make_unique<ExpectedHandler<double>>(); });
  if (!given.outcomes.empty() && *std::max_element(given.outcomes.begin(), given.outcomes.end()) < 100)
    check_gradient("enumerated", *model, batch, [] { return std::make_unique<EnumerateHandler<double>>(); });
  if (given.posterior) {
    const auto with_posterior = given.make(given.spec, given.dimensions, true);
    REQUIRE(with_posterior->structure().posterior);
    check_gradient("posterior", *with_posterior, batch, twice, with_posterior_terms);
  }
  CHECK(gradient_error(*model, batch, once, true).first > 1e-2);
}

/// Checks that an example's loss is the same alone, with other padding, in copies of its row, and with one-hot weights; with
/// expected weights it is another, and the same alone and with other padding.
inline void check_rows(const Given& given) {
  const auto model = given.make(given.spec, given.dimensions, false);
  const auto hard = [&](const Batch& batch, const Options& options) {
    ForcedHandler<double> handler(options);
    return losses(*model, batch, handler);
  };
  const auto soft = [&](const Batch& batch) {
    ExpectedHandler<double> handler;
    return losses(*model, batch, handler);
  };
  const auto loss = hard(given.batch, given.forced), relaxed = soft(given.batch);
  const int examples = given.batch.examples();
  REQUIRE(static_cast<int>(loss.size()) == examples);
  auto same = given.padded;
  same.push_back(given.batch);
  for (const auto& batch : same) {
    const auto all = hard(batch, given.forced), all_relaxed = soft(batch);
    for (int b = 0; b < examples; ++b) {
      CHECK(all[b] == doctest::Approx(loss[b]).epsilon(1e-12));
      CHECK(all_relaxed[b] == doctest::Approx(relaxed[b]).epsilon(1e-12));
      const auto one = given.alone(batch, b);
      CHECK(hard(one, of_example(given.forced, b, given.columns))[0] == doctest::Approx(loss[b]).epsilon(1e-12));
      CHECK(soft(one)[0] == doctest::Approx(relaxed[b]).epsilon(1e-12));
      CHECK(loss[b] > 0);
      CHECK(std::abs(relaxed[b] - loss[b]) > 1e-4);
    }
  }
  for (int copies : {1, 2, 3, 7}) {
    const auto options = copied(given.forced, copies, given.columns);
    ForcedWeights one_hot(options, 1.0);
    const auto rows = hard(given.batch, options), weighted = losses(*model, given.batch, one_hot);
    REQUIRE(static_cast<int>(rows.size()) == copies * examples);
    for (int r = 0; r < copies * examples; ++r) {
      CHECK(rows[r] == doctest::Approx(loss[r / copies]).epsilon(1e-12));
      CHECK(weighted[r] == doctest::Approx(loss[r / copies]).epsilon(1e-12));
    }
  }
}

/// Checks the number of outcomes, and that the enumerated rows sum to the expectation over all paths, each run separately.
inline void check_outcomes(const Model<double>& model, const Batch& batch, const std::vector<double>& outcomes,
                           int columns = 1) {
  CHECK(model.outcomes(batch) == outcomes);
  double total = 0;
  int enumerated = 0;
  for (int b = 0; b < batch.examples(); ++b) {
    std::vector<int> options;
    for (std::size_t site = 0; site < model.structure().sites.size(); ++site) {
      const auto asked = model.site_extent(batch, site, b);
      for (int t = 0; t < asked.times; ++t) options.insert(options.end(), asked.options.begin(), asked.options.end());
    }
    double product = 1;
    for (int n : options) product *= n;
    CHECK(product == outcomes[b]);
    if (product > enumerable) continue;
    const auto one = batch.select({b});
    const double by_paths = expected_loss_by_paths(model, one, options, columns);
    CHECK(expected_loss_by_rows(model, one) == doctest::Approx(by_paths).epsilon(1e-12));
    total += by_paths;
    ++enumerated;
  }
  CHECK(enumerated > 0);
  if (enumerated == batch.examples()) CHECK(expected_loss_by_rows(model, batch) == doctest::Approx(total).epsilon(1e-12));
}

/// All of these checks.
inline void check_model(const Given& given) {
  CAPTURE(given.spec);
  check_gradients(given);
  check_rows(given);
  const auto model = given.make(given.spec, given.dimensions, false);
  if (!given.dependence.empty()) CHECK(model->structure().dependence() == given.dependence);
  if (!given.outcomes.empty()) check_outcomes(*model, given.batch, given.outcomes, given.columns);
}

}  // namespace hardgrad::testing
