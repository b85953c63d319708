// The selector's k by example, and the router's balance: its value by hand and its gradient by finite differences.
#include <doctest/doctest.h>

#include <cmath>

#include "core/autodiff/reduce.hpp"
#include "core/autodiff/tape.hpp"
#include "core/choice/handlers.hpp"
#include "core/models/model.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::selector_router_test {
namespace {

std::unique_ptr<Model<double>> make(const std::string& spec, int features, int width) {
  return make_model<double>(Spec::parse(spec), {{"features", features}, {"feature_width", width}, {"labels", 3}}, Key(3));
}

/// Four examples of `numbers` numbers, the last one as the second.
Batch batch_of(std::size_t numbers) {
  Batch batch;
  batch.id = {4, 5, 6, 5};
  auto x = random_matrix(4, numbers, 8);
  std::copy_n(row_of(x, 1).begin(), numbers, row_of(x, 3).begin());
  batch.reals = {{"x", x}};
  batch.integers = {{"label", shaped<int>({4}, {0, 2, 1, 2})}};
  return batch;
}

/// The balance: the mean cost of the root rows, and its gradient.
std::pair<double, std::vector<double>> balance(const Model<double>& model, const Batch& batch) {
  Tape<double> tape;
  GreedyHandler<double> handler;
  Episode<double> episode(tape, handler, batch.examples());
  model.run(batch, episode);
  Var<double> total = tape.constant(1, 1);
  int costs = 0;
  for (const auto& cost : episode.costs())
    if (cost.rows->is_root()) total = sum(cost.loss, 1.0 / batch.examples()), ++costs;
  REQUIRE(costs == 1);
  std::vector<double> gradient(model.parameters().size());
  differentiate(total, model.parameters(), gradient);
  return {total.item(), gradient};
}

}  // namespace

TEST_CASE("router: the balance is n times the sum of the squared mean shares, and its gradient that of both factors") {
  const auto batch = batch_of(5);
  for (const std::string subset_size : {"1", "2"}) {
    const auto model = make("router[experts=3,hidden=2,balance=0.7,picks=" + subset_size + "]", 5, 1);
    const auto& W = model->parameters().find("gate.weight")->value;
    const auto& g = model->parameters().find("gate.bias")->value;
    double share[3] = {};
    for (std::size_t b = 0; b < 4; ++b) {
      double w[3], total = 0;
      for (std::size_t i = 0; i < 3; ++i) {
        double e = g.flat(i);
        for (std::size_t j = 0; j < 5; ++j) e += W(i, j) * row_of(batch.numbers("x"), b)[j];
        w[i] = std::exp(subset_size == "1" ? e : -e);  // of two of three, one is left out
        total += w[i];
      }
      for (std::size_t i = 0; i < 3; ++i) share[i] += (subset_size == "1" ? w[i] / total : (1 - w[i] / total) / 2) / 4;
    }
    double expected = 0;
    for (double p : share) expected += 0.7 * 3 * p * p;
    const auto [value, gradient] = balance(*model, batch);
    CHECK(value == doctest::Approx(expected).epsilon(1e-13));
    CHECK(value >= 0.7);
    std::size_t at = 0;
    double largest = 0;
    for (auto& parameter : model->parameters())
      for (double& x : parameter.value) {
        const double before = x;
        x = before + 1e-5;
        const double above = balance(*model, batch).first;
        x = before - 1e-5;
        const double below = balance(*model, batch).first;
        x = before;
        largest = std::max(largest, std::abs(gradient[at]));
        CHECK(std::abs(gradient[at++] - (above - below) / 2e-5) < 1e-9);
      }
    CHECK(largest > 1e-2);
    CHECK(*model->structure().joins);
  }
  CHECK(!*make("router", 5, 1)->structure().joins);
  CHECK_THROWS_AS(make("router[balance=-1]", 5, 1), UsageError);
}

TEST_CASE("selector: k is a share of each example's own features") {
  auto batch = batch_of(8 * 2);
  batch.integers["length"] = shaped<int>({4}, {8, 3, 1, 3});
  for (const std::string maps : {"own", "shared"})
    for (const std::string law : {"conditional_poisson", "plackett_luce"}) {
      const auto model = make("selector[share=0.3,hidden=4,maps=" + maps + ",law=" + law + "]", 8, 2);
      CHECK(model->outcomes(batch) == std::vector<double>{56, 3, 1, 3});
      CHECK(model->structure().largest_support() == 56);
      Tape<double> tape;
      EnumerateHandler<double> handler;
      Episode<double> episode(tape, handler, 4);
      model->run(batch, episode);
      const auto& choice = episode.steps()[0].choice;
      REQUIRE(choice.rows->size() == 56 + 3 + 1 + 3);
      const auto log_p = episode.log_probability(0).value();
      double mass[4] = {};
      for (std::size_t r = 0; r < choice.rows->size(); ++r) {
        const int b = choice.rows->parent[r];
        mass[b] += std::exp(log_p.data[r]);
        int picked = 0;
        for (int k = 0; k < choice.subset_size(); ++k)
          if (const int i = choice.picked()[r * choice.subset_size() + k]; i >= 0) {
            CHECK(i < batch.ints("length")(b));
            ++picked;
          }
        CHECK(picked == (b == 0 ? 3 : 1));
      }
      for (double m : mass) CHECK(m == doctest::Approx(1).epsilon(1e-13));
    }
  CHECK_THROWS_WITH_AS(make("selector[picks=9]", 8, 2), doctest::Contains("more than the 8 features"), UsageError);
  CHECK_THROWS_AS(make("selector[picks=0]", 8, 2), UsageError);
  CHECK_THROWS_AS(make("selector[share=1.5]", 8, 2), UsageError);
}

}  // namespace hardgrad::testing::selector_router_test
