// Mirrored problems: options in the opposite order, targets on the other side. All moments of an estimator must be mirrored,
// too, also if the network is nearly certain: a logarithm or probability near 1 that lost precision shows here.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/support/exactness.hpp"

namespace hardgrad::testing::mirrored_test {
using namespace measurement;
namespace {

struct Problem {
  std::string model, mirror;
  bool binary;
};

std::vector<Problem> problems(double phi) {
  return {{fmt::format("bits[t=0.3,logit={}]", phi), fmt::format("bits[t=0.7,logit={}]", -phi), true},
          {fmt::format("bits[bits=2,t=0.3;0.6,logit={}]", phi), fmt::format("bits[bits=2,t=0.7;0.4,logit={}]", -phi), true},
          {fmt::format("bits[options=3,t=0.3,logit=0.2;0;{}]", phi), fmt::format("bits[options=3,t=0.7,logit={};0;0.2]", phi),
           false}};
}

Moments moments_of(const std::string& spec, const std::string& model_spec) {
  const auto model = model_of(model_spec);
  const auto estimator = estimator_of(spec, *model);
  const auto truth = exact_reference(estimator->target(), *model, one_example(), 1e6);
  return exact_moments(*estimator, *model, one_example(), truth.of_example, 1e6);
}

/// Largest difference of the means, relative to the largest entry; and of the traces.
std::pair<double, double> asymmetry(const std::string& spec, const Problem& problem) {
  const auto there = moments_of(spec, problem.model);
  auto here = moments_of(spec, problem.mirror).mean;
  if (problem.binary)
    for (double& x : here) x = -x;
  else
    std::reverse(here.begin(), here.end());
  const double trace = moments_of(spec, problem.mirror).trace;
  const double size = std::max(largest(there.mean), 1e-300);
  return {largest_difference(there.mean, here) / size, std::abs(there.trace - trace) / std::max(there.trace, 1e-300)};
}

/// Estimators that depend on the order of options, on the direction of a logit, or on the loss of weights that do not sum to 1: for
/// them a mirrored problem is a different one. And path_only, whose gradient is 0.
const std::set<std::string> ordered = {"carms",     "dense_mixer", "disarm_stick", "disarm_tree",
                                       "path_only", "perturbed",   "sparse_mixer", "stochastic_ad"};
/// Estimators whose noise is integrated, not enumerated: their accuracy is that of the quadrature.
const std::set<std::string> integrated = {"gumbel_softmax", "st_gumbel", "rebar", "relax", "gumbel_rao", "reinmax_rao"};

TEST_CASE("moments of mirrored problems are mirrored, up to saturation") {
  std::set<std::string> visited;
  int compared = 0;
  for (double phi : {2.0, 25.0, 34.0, 40.0, 120.0, 650.0})
    for (const auto& problem : problems(phi))
      for (const auto& name : Estimators::instance().names()) {
        const auto spec = Spec::parse(name);
        const auto model = model_of(problem.model);
        if (ordered.count(name) || integrated.count(name) || name == "path_only" || wants_posterior(spec) ||  // a mean of 0
            !why_unsupported(spec, model->structure()).empty())
          continue;
        CAPTURE(name);
        CAPTURE(problem.model);
        try {
          const auto [mean, trace] = asymmetry(name, problem);
          CHECK(mean < 1e-12);
          CHECK(trace < 1e-12);
        } catch (const UsageError&) {  // more visits than are affordable
          continue;
        }
        visited.insert(name);
        ++compared;
      }
  CHECK(compared == 689);
  CHECK(visited.size() == 42);
}

}  // namespace
}  // namespace hardgrad::testing::mirrored_test
