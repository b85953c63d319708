// Stratified and systematic samples: unbiased for dependent choices, too, with less variance than independent ones.
#include <doctest/doctest.h>

#include "core/choice/handlers.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"
#include "tests/support/toys.hpp"

namespace hardgrad::testing::stratified_test {
using namespace measurement;
namespace {

using verification::Recurrent;

const std::vector<std::string> specs = {
    "stratified[samples=1]", "stratified[samples=2]", "stratified[samples=2,baseline=0.7,reward_to_go=true]",
    "systematic[samples=1]", "systematic[samples=2]", "systematic[samples=2,baseline=0.7,reward_to_go=true]"};

TEST_CASE("stratified and systematic samples have the exact mean on a recurrent model") {
  for (bool feeding : {false, true}) {
    Recurrent<double> model(feeding);
    for (const auto& spec : specs) {
      CAPTURE(feeding);
      CAPTURE(spec);
      CHECK(bias_of(spec, model, Recurrent<double>::batch()) < 1e-10);
    }
    for (const auto* spec : {"stratified[samples=3]", "systematic[samples=3]"})
      CHECK(bias_of(spec, model, Recurrent<double>::batch().select({1})) < 1e-10);
  }
}

TEST_CASE("stratified and systematic samples have the exact mean on bits") {
  for (const auto* toy : toys) {
    auto model = model_of(toy);
    for (const auto& spec : specs) {
      CAPTURE(toy);
      CAPTURE(spec);
      CHECK(bias_of(spec, *model) < 1e-10);
    }
  }
}

TEST_CASE("stratified samples have less variance than independent ones on one bit, and are exact if strata are decided") {
  for (double phi : {-1.3, 0.0, 0.4, 2.0}) {
    auto model = model_of("bits[t=0.3,logit=" + std::to_string(phi) + "]");
    for (int k : {2, 3, 4}) {
      const auto samples = "[samples=" + std::to_string(k) + "]";
      const double independent = variance_of("reinforce" + samples, *model);
      for (const auto* name : {"stratified", "systematic"}) {
        CAPTURE(phi);
        CAPTURE(k);
        CAPTURE(name);
        const double v = variance_of(name + samples, *model);
        CHECK(v < independent);
        // Only the stratum at the edge is undecided: its bit is 1 with probability r, and its term has variance r (1 - r).
        const double p = 1 / (1 + std::exp(-phi)), r = k * (1 - p) - std::floor(k * (1 - p));
        const double jump = (0.49 * (1 - p) + 0.09 * p) / k;
        CHECK(std::abs(v - r * (1 - r) * jump * jump) < 1e-13);
      }
    }
  }
}

TEST_CASE("one stratified sample is one plain sample") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  const double plain = variance_of("reinforce", model, batch);
  for (const auto* spec : {"stratified[samples=1]", "systematic[samples=1]"})
    CHECK(variance_of(spec, model, batch) == doctest::Approx(plain).epsilon(1e-12));
}

/// Fixed strata: sample 0 always gets the lower half.
class UnshuffledHandler final : public Handler<double> {
 public:
  explicit UnshuffledHandler(Randomness& random) : random_(random) {}
  Choice<double> choose(Tape<double>&, const Question<double>& question) override {
    auto rows = fan_out(question, question.site.rows->is_root() ? 2 : 1);
    const auto cells = question.parent_choices(*rows);
    std::vector<int> option(cells.size());
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const auto log_p = question.categories().log_p().value();
      const std::size_t r = c / question.site.columns;
      std::vector<double> share;
      double from = 0;
      for (int i = 0; i < question.categories().options()[cells[c]]; ++i) {
        const double to = from + std::exp(log_p(cells[c], i)), low = 0.5 * static_cast<double>(r % 2);
        share.push_back(std::max(0.0, 2 * (std::min(to, low + 0.5) - std::max(from, low))));
        from = to;
      }
      option[c] = random_.categorical(share, {.replica = static_cast<std::uint32_t>(r),
                                              .step = static_cast<std::uint32_t>(question.step),
                                              .column = static_cast<std::uint32_t>(c % question.site.columns)});
    }
    return {rows, ChosenOptions{std::move(option)}};
  }

 private:
  Randomness& random_;
};

class Unshuffled final : public Estimator<double> {
 public:
  Estimate<double> estimate(const Problem<double>& problem) const override {
    UnshuffledHandler handler(problem.random);
    return with_constant_baseline(Sampled<double>(problem, 2, handler), 0, Credit::whole);
  }
  bool exchangeable() const override { return false; }
};

TEST_CASE("strata that are not shuffled at every choice are detected") {
  auto model = model_of(table_bits);
  CHECK(bias_of(Unshuffled(), *model, one_example()) > 1e-3);
  auto one = model_of("bits[logit=2]");
  CHECK(bias_of(Unshuffled(), *one, one_example()) < 1e-10);  // for one choice it does not matter
}

}  // namespace
}  // namespace hardgrad::testing::stratified_test
