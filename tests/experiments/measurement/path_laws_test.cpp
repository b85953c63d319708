// Laws of whole samples off policy: sums over all paths, computed anew from runs of one path each; and their purpose.
#include "experiments/measurement/path_laws.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/autodiff/tape.hpp"
#include "experiments/measurement/defensive_mixture.hpp"
#include "experiments/measurement/draw.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/reference_gradient.hpp"
#include "tests/core/models/given_choices.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::path_laws_test {
using namespace measurement;
namespace {

constexpr int words = 2, longest = 3, sequences = 15;
const Dimensions table{{"words", words}, {"longest", longest}, {"reward_table", sequences}};
const std::string far_off = "writer[policy=table,drift=3]";

Batch rewarded() {
  Batch batch;
  batch.id = {5};
  batch.reals["rewards"] = zeros<double>({1, sequences});
  for (int i = 0; i < sequences; ++i) batch.reals["rewards"].flat(i) = std::sin(3.0 * i);
  return batch;
}

/// Of one path: the value of each law, and its options where there are several.
struct Path {
  std::array<double, PathLaws::laws> value;
  std::vector<int> option;
};
Path path_of(const Model<double>& model, const Options& given) {
  Tape<double> tape;
  ForcedHandler<double> handler(given);
  Episode<double> episode(tape, handler, 1, {.drawn_from = DrawnFrom::behaviour});
  model.run(rewarded(), episode);
  Path path;
  double p = 1, q = 1, lengths = 0, own = 0;
  for (const auto& [question, choice] : episode.steps()) {
    const auto& prior = question.prior_categories();
    const int options = prior.options()[0], z = choice.option()[0];
    if (options == 1) continue;
    const double p_z = std::exp(prior.log_p().value()(0, z));
    const double q_z = std::exp(question.of(DrawnFrom::behaviour)->log_probability(choice).value()(0, 0));
    double length = 0;
    for (int i = 0; i < options; ++i) length += std::pow((i == z) - std::exp(prior.log_p().value()(0, i)), 2);
    p *= p_z, q *= q_z, lengths += length, own += std::pow(p_z / q_z, 2) * length;
    path.option.push_back(z);
  }
  path.value = {p, p * p / q * lengths, q * own, q * std::pow(p / q, 2.0 / path.option.size()) * lengths, 1};
  return path;
}

std::vector<Path> all_paths(const Model<double>& model) {
  std::vector<Path> paths;
  for (int n = 0; n <= longest; ++n)
    for (int code = 0; code < 1 << n; ++code) {
      Options given;
      for (int t = 0; t < longest; ++t) given.push_back({t < n ? code >> t & 1 : t == n ? words : 0});
      paths.push_back(path_of(model, given));
    }
  return paths;
}

}  // namespace

TEST_CASE("each law is a sum over the paths that go on with an option") {
  const auto model = lively(far_off, table);
  const auto laws = PathLaws::of(*model, rewarded());
  REQUIRE(laws);
  const auto paths = all_paths(*model);
  REQUIRE(paths.size() == sequences);
  int compared = 0;
  for (const auto& path : paths) {
    auto place = PathLaws::root(5);
    for (std::size_t t = 0; t < path.option.size(); ++t) {
      const auto* found = laws->at(place);
      REQUIRE(found);
      for (std::size_t law = 0; law < PathLaws::laws; ++law) {
        double sum = 0;
        for (const auto& other : paths) {
          const bool same =
              other.option.size() > t && std::equal(other.option.begin(), other.option.begin() + t + 1, path.option.begin());
          if (same) sum += other.value[law];
        }
        CHECK((*found)[law][path.option[t]] == doctest::Approx(sum).epsilon(1e-9));
        ++compared;
      }
      place = PathLaws::after(place, static_cast<std::uint32_t>(t), path.option[t]);
    }
    CHECK(!laws->at(place));
  }
  CHECK(compared == 5 * (1 + 2 * 2 + 4 * 3 + 8 * 3));
}

TEST_CASE("an older network's samples have laws, and networks without a behaviour policy have none") {
  const auto own = lively("writer[policy=table]", table);
  CHECK(!PathLaws::of(*own, rewarded()));
  const auto drifted = lively(far_off, table);
  std::shared_ptr<Model<double>> older = lively("writer[policy=table]", table);
  for (auto& p : older->parameters())
    for (std::size_t i = 0; i < p.value.size(); ++i) p.value.flat(i) += std::sin(1.0 + static_cast<double>(i));
  own->set_policies({.behaviour = older});
  const auto laws = PathLaws::of(*own, rewarded());
  REQUIRE(laws);
  const auto& root = *laws->at(PathLaws::root(5));
  CHECK(root[PathLaws::trained][0] + root[PathLaws::trained][1] + root[PathLaws::trained][2] == doctest::Approx(1));
  CHECK(root[PathLaws::alike][0] + root[PathLaws::alike][1] + root[PathLaws::alike][2] == sequences);
  CHECK(root[PathLaws::samples] != root[PathLaws::trained]);
  CHECK(!PathLaws::of(*model_of("bits[bits=3]"), one_example()));
}

TEST_CASE("off policy, intervals hold the exact variance, and the trained policy's laws alone do not find it") {
  const auto model = lively(far_off, table);
  int held = 0, runs = 0, held_without = 0;
  for (const std::string spec : {"policy_gradient[ratio=sequence,samples=2]", "policy_gradient[preset=dapo,samples=2]",
                                 "policy_gradient[preset=gspo,samples=2]"}) {
    CAPTURE(spec);
    const auto estimator = make_estimator<double>(Spec::parse(spec), model->structure(), Key(1));
    const auto truth = exact_reference(estimator->target(), *model, rewarded(), 1e6);
    const auto exact = exact_moments(*estimator, *model, rewarded(), truth.of_example, 1e5);
    double mean = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Key noise = Key(6) / seed;
      auto plan = mixture_plan(*estimator, *model, rewarded(), noise, PathLaws::of(*model, rewarded()));
      CHECK((plan.samples == 2 && plan.paths));
      const auto interval = [&](const MixturePlan& with) {
        ReplicateSums sums(truth.gradient, 2, 512);
        draw(sums, *estimator, *model, rewarded(), noise, with, {});
        const ReplicateStatistics r(std::move(sums));
        if (with.paths) mean += r.variance() / exact.trace / 20;
        const auto [low, high] = r.variance_interval(0.95);
        return low <= exact.trace && exact.trace <= high;
      };
      held += interval(plan);
      ++runs;
      held_without += interval({.examples = plan.examples, .draws = plan.draws, .samples = 0});
    }
    CHECK(mean == doctest::Approx(1).epsilon(0.15));
  }
  CHECK(runs == 60);
  CHECK(held >= 54);
  CHECK(held_without <= 50);
}

}  // namespace hardgrad::testing::path_laws_test
