// The ponderer: gradients, both ways to ask and both laws, relaxed and enumerated answers, the law in closed form.
#include <doctest/doctest.h>

#include "core/estimator/enumeration/objectives.hpp"
#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::ponderer_test {
namespace {

const Dimensions dimensions{{"puzzle_width", 3}, {"positions", 2}, {"labels", 3}};

Batch two_puzzles() {
  Batch batch;
  batch.id = {3, 4};
  batch.reals["x"] = shaped<double>({2, 3}, {1, -0.5, 0, 0.3, 0.2, -1});
  batch.integers["label"] = shaped<int>({2, 2}, {2, 0, 1, -1});
  return batch;
}

std::string spec(const std::string& settings) { return "ponderer[hidden=3,steps=4,tau=0.3," + settings + "]"; }
const std::string laws[] = {"law=geometric,beta=0.7,prior=0.3", "law=act"};
// Two examples of four steps: halt after the second step, and at the last (ask=bits: 0 halts, finished rows answer 0;
// ask=step).
const Options bits{{1, 1}, {0, 1}, {0, 1}}, step{{1, 3}};

Options forced(const std::string& settings) { return settings.find("ask=step") == std::string::npos ? bits : step; }

/// Both laws and both ways to ask; with law=act no example may halt for certain before the last step.
std::vector<std::string> specs() {
  std::vector<std::string> all;
  for (const auto& law : laws)
    for (const auto* ask : {"ask=bits", "ask=step"}) all.push_back(spec(law + "," + ask));
  return all;
}
std::unique_ptr<Model<double>> patient(const std::string& text, const Dimensions& of = dimensions, bool posterior = false) {
  auto model = lively(text, of, posterior);
  for (auto& p : model->parameters())
    if (p.name == "halt.bias" || p.name == "posterior.halt.bias") p.value.flat(0) = -1.3;
  return model;
}

/// Sequences of three inputs and of one.
const Dimensions sequences{{"puzzle_width", 2}, {"positions", 1}, {"labels", 3}, {"puzzle_steps", 3}};
Batch two_sequences() {
  Batch batch;
  batch.id = {3, 4};
  batch.reals["x"] = shaped<double>({2, 3, 2}, {1, -0.5, 0, 0.3, 0.2, -1, 0.7, 0.1, 0, 0, 0, 0});
  batch.integers["label"] = shaped<int>({2, 3, 1}, {2, 0, 1, 1, -1, -1});
  batch.integers["length"] = shaped<int>({2}, {3, 1});
  return batch;
}

}  // namespace

TEST_CASE("ponderer: gradients and copies of rows") {
  for (const auto& text : specs())
    check_model({.spec = text, .dimensions = dimensions, .batch = two_puzzles(), .forced = forced(text), .make = patient});
}

TEST_CASE("ponderer: sequences have N^T outcomes, exact gradients, and carry the halted state on") {
  for (const auto& law : laws) {
    CAPTURE(law);
    std::vector<double> of_both;
    for (const std::string ask : {"ask=bits", "ask=step"}) {
      CAPTURE(ask);
      const auto model = patient("ponderer[hidden=3,steps=3,tau=0.3," + law + "," + ask + "]", sequences);
      CHECK(model->structure().dependence() == "sequential");
      CHECK(model->outcomes(two_sequences()) == std::vector<double>{27, 3});
      check_gradient("expected", *model, two_sequences(), [] { return std::make_unique<ExpectedHandler<double>>(); });
      check_gradient("enumerated", *model, two_sequences(), [] { return std::make_unique<EnumerateHandler<double>>(); });
      Tape<double> tape;
      EnumerateHandler<double> handler;
      Episode<double> episode(tape, handler, 2);
      model->run(two_sequences(), episode);
      REQUIRE(episode.predictions().size() == 6);  // a label and the mean number of steps for each input
      of_both.push_back(expected_loss(episode).item());
      // The halting step of the first input changes the law of the second.
      const auto second = [&](int first) {
        Tape<double> of_forced;
        ForcedHandler<double> forced(ask == "ask=step" ? Options{{first, 0}, {0, 0}, {0, 0}}
                                                       : Options{{first, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}});
        Episode<double> run(of_forced, forced, 2);
        model->run(two_sequences(), run);
        return run.steps()[ask == "ask=step" ? 1 : 2].question.categories().log_p().value()(0, 0);
      };
      CHECK(std::abs(second(0) - second(1)) > 1e-6);
    }
    CHECK(of_both[0] == doctest::Approx(of_both[1]).epsilon(1e-9));
  }
}

TEST_CASE("ponderer: a law that ends early has the gradient of its remainder") {
  for (const auto* ask : {"ask=bits", "ask=step"}) {
    auto model = lively(spec("law=act," + std::string(ask)), dimensions);
    for (auto& p : model->parameters())
      if (p.name == "halt.bias") p.value.flat(0) = 0.6;  // sig is about 0.65: the rest is certain to halt at the second step
    check_gradient("expected", *model, two_puzzles(), [] { return std::make_unique<ExpectedHandler<double>>(); });
    check_gradient("enumerated", *model, two_puzzles(), [] { return std::make_unique<EnumerateHandler<double>>(); });
    Tape<double> tape;
    EnumerateHandler<double> handler;
    Episode<double> episode(tape, handler, 2);
    model->run(two_puzzles(), episode);
    CHECK(episode.costs().back().rows->size() == 4);  // two possible steps to halt, for two examples
  }
}

TEST_CASE("ponderer: both ways to ask have the same expected loss and gradient, and each step is a leaf") {
  for (const auto& law : laws) {
    CAPTURE(law);
    auto in_bits = patient(spec(law + ",ask=bits")), at_once = patient(spec(law + ",ask=step"));
    const auto exact = [](Model<double>& model) {  // the loss, followed by its gradient
      Tape<double> tape;
      EnumerateHandler<double> handler;
      Episode<double> episode(tape, handler, 2);
      model.run(two_puzzles(), episode);
      const auto loss = expected_loss(episode);
      std::vector<double> all(model.parameters().size());
      tape.backward(loss);
      tape.add_gradient(model.parameters(), std::span<double>(all));
      all.insert(all.begin(), loss.item());
      return all;
    };
    const auto a = exact(*in_bits), b = exact(*at_once);
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-9));
      if (i > 0) largest = std::max(largest, std::abs(a[i]));
    }
    CHECK(largest > 0.01);
    CHECK(in_bits->structure().dependence() == "sequential");
    CHECK(at_once->structure().dependence() == "one choice");
    for (const auto* model : {in_bits.get(), at_once.get()}) CHECK(model->outcomes(two_puzzles()) == std::vector<double>{4, 4});
  }
}

TEST_CASE("ponderer: the halting probabilities equal the law's closed form") {
  for (const auto& law : laws) {
    auto model = lively(spec(law + ",ask=bits"), dimensions);
    for (auto& p : model->parameters())
      if (p.name == "halt.weight") std::fill(p.value.begin(), p.value.end(), 0.0);
    const double unit = 0.22;  // at every step
    model->parameters().find("halt.bias")->value.flat(0) = std::log(unit / (1 - unit));
    Tape<double> tape;
    EnumerateHandler<double> handler;
    Episode<double> episode(tape, handler, 1);
    model->run(two_puzzles().select({0}), episode);
    const auto rows = episode.costs().back().rows;
    REQUIRE(rows->size() == 4);
    std::vector<double> expected;
    for (int n = 0; n < 3; ++n) expected.push_back(law == "law=act" ? unit : unit * std::pow(1 - unit, n));
    expected.push_back(1 - expected[0] - expected[1] - expected[2]);
    const double mean = expected[0] + 2 * expected[1] + 3 * expected[2] + 4 * expected[3];
    REQUIRE(episode.predictions().size() == 3);  // after two labels
    for (int thousandths : episode.predictions()[2].label) CHECK(thousandths == std::lround(1000 * mean));
    for (int n = 0; n < 4; ++n)
      CHECK(std::exp(episode.path_log_probability(rows).value().data[n]) == doctest::Approx(expected[n]).epsilon(1e-12));
  }
}

TEST_CASE(
    "ponderer: an act posterior equals its stated law, for both ways to ask, whether it halts before or after the prior") {
  for (const auto* ask : {"ask=bits", "ask=step"})
    for (const auto& [prior_unit, posterior_unit] : {std::pair{0.3, 0.8}, std::pair{0.6, 0.2}, std::pair{0.28, 0.55}}) {
      CAPTURE(ask);
      CAPTURE(prior_unit);
      auto model = lively(spec("law=act," + std::string(ask)), dimensions, true);
      for (const auto& [name, unit] : {std::pair{"halt", prior_unit}, std::pair{"posterior.halt", posterior_unit}}) {
        auto& weight = model->parameters().find(name + std::string(".weight"))->value.storage();
        std::fill(weight.begin(), weight.end(), 0.0);
        model->parameters().find(name + std::string(".bias"))->value.flat(0) = std::log(unit / (1 - unit));
      }
      std::vector<double> expected;
      double reached = 1, left = 1, rest = 1;
      for (int n = 0; n < 4; ++n) {
        left = std::max(left - posterior_unit, 0.01), rest -= prior_unit;
        const bool last = n == 3 || rest <= 0.01;
        const double chance = last ? 1 : posterior_unit / (posterior_unit + left);
        expected.push_back(reached * chance);
        reached *= 1 - chance;
        if (last) break;
      }
      Tape<double> tape;
      EnumerateHandler<double> handler;
      Episode<double> episode(tape, handler, 1, with_posterior_terms);
      model->run(two_puzzles().select({0}), episode);
      const auto rows = episode.costs().back().rows;
      REQUIRE(rows->size() == expected.size());
      double sum = 0;
      for (std::size_t n = 0; n < expected.size(); ++n) {
        const double q = std::exp(episode.path_log_probability(rows, DrawnFrom::posterior).value().data[n]);
        CHECK(q == doctest::Approx(expected[n]).epsilon(1e-12));
        sum += q;
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-12));
    }
}

}  // namespace hardgrad::testing::ponderer_test
