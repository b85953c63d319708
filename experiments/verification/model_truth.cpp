#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/autodiff/tape.hpp"
#include "experiments/measurement/reference_gradient.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/model_checks.hpp"
#include "experiments/verification/traces.hpp"

namespace hardgrad::verification {
namespace {

constexpr double most_outcomes = 800;  // each is a run
constexpr double slope_error = 1e-5;

/// A case to answer, for which a gradient is checked.
struct How {
  std::string name;
  bool posterior;
  Form form;
};

/// Central differences along a random direction of each parameter.
std::string against_differences(Model<double>& model, const Batch& batch, const How& how, double& worst) {
  const TargetTerms terms =
      how.posterior ? TargetTerms{DrawnFrom::posterior, TargetTerms::Divergence::analytic} : TargetTerms{};
  Tape<double> tape;
  const auto value = [&] {
    tape.clear();
    ScriptedHandler<double> handler(batch, drawn_by(Key(23)), 2, how.form);
    Episode<double> run(tape, handler, batch.examples(), terms);
    model.run(batch, run);
    return mixture(run);
  };
  std::vector<double> gradient(model.parameters().size());
  differentiate(value(), model.parameters(), gradient);
  KeyedRandomness random(Key(29));
  std::uint32_t n = 0;
  for (auto& parameter : model.parameters()) {
    const auto kept = parameter.value.storage();
    std::vector<double> direction(kept.size());
    double slope = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      direction[i] = 2 * random.uniform({.index = n++}) - 1;
      slope += direction[i] * gradient[parameter.offset + i];
    }
    const auto at = [&](double step) {
      for (std::size_t i = 0; i < kept.size(); ++i) parameter.value.flat(i) = kept[i] + step * direction[i];
      return value().item();
    };
    double best = std::numeric_limits<double>::infinity(), differences = 0;
    for (double step : {1e-5, 1e-6, 1e-7}) {  // smaller steps near a kink
      const double found = (at(step) - at(-step)) / (2 * step), off = std::abs(found - slope) / (1 + std::abs(slope));
      if (off < best) best = off, differences = found;
      if (best < slope_error) break;
    }
    parameter.value.storage() = kept;
    worst = std::max(worst, best);
    if (!(best < slope_error))
      return fmt::format("{}, parameter {}: backward gives {:.6g} along a direction, differences give {:.6g}", how.name,
                         parameter.name, slope, differences);
  }
  return "";
}

/// All complete sets of choices of the batch's only example, in turn: the last choice that has a next option takes it.
class Outcomes {
 public:
  /// The answers of this outcome, for one run.
  GivenChoices answers() {
    asked_ = 0;
    return [this](const ChoiceIndex&, int options) {
      if (asked_ == answer_.size()) answer_.push_back({0, options});
      return static_cast<double>(answer_[asked_++].first);
    };
  }
  bool next() {
    answer_.resize(asked_);
    while (!answer_.empty() && answer_.back().first + 1 == answer_.back().second) answer_.pop_back();
    if (answer_.empty()) return false;
    ++answer_.back().first;
    return true;
  }

 private:
  std::size_t asked_ = 0;
  std::vector<std::pair<int, int>> answer_;  // option, and number of options
};

/// Among the training split's first examples with at most `most_outcomes`, the one with the most outcomes, and their number.
/// NotExact if there is none.
std::pair<int, double> chosen(const ModelScene& scene) {
  std::pair<int, double> found{-1, 1};
  double fewest = std::numeric_limits<double>::infinity();
  const auto examples = std::min<std::size_t>(32, scene.task->size(tasks::Split::train));
  for (int i = 0; i < static_cast<int>(examples); ++i) {
    const double n = scene.model->outcomes(scene.examples({i}))[0];
    if (n > found.second && n <= most_outcomes) found = {i, n};
    if (n > 1) fewest = std::min(fewest, n);
  }
  if (found.first < 0)
    throw NotExact(std::isfinite(fewest)
                       ? fmt::format("an example has at least {:.6g} outcomes, more than {}", fewest, most_outcomes)
                       : "no example has a choice");
  return found;
}

/// Runs every outcome of the batch's only example separately, until `visit` returns false; then returns false.
bool each_outcome(const Model<double>& model, const Batch& batch, const TargetTerms& terms,
                  const std::function<bool(Episode<double>&)>& visit) {
  Outcomes outcomes;
  Tape<double> tape;
  do {
    tape.clear();
    ScriptedHandler<double> handler(batch, outcomes.answers());
    Episode<double> run(tape, handler, 1, terms);
    model.run(batch, run);
    if (!visit(run)) return false;
  } while (outcomes.next());
  return true;
}

/// [1, 1], for a run of one outcome.
Var<double> log_probability(Episode<double>& run, DrawnFrom of) {
  auto sum = run.tape().constant(1, 1);
  for (std::size_t t = 0; t < run.steps().size(); ++t) sum = add(sum, run.log_probability(static_cast<int>(t), of));
  return sum;
}
Var<double> loss(const Episode<double>& run) {
  auto sum = run.tape().constant(1, 1);
  for (const auto& paid : run.costs()) sum = add(sum, paid.loss);
  return sum;
}

bool near(double a, double b) { return std::abs(a - b) < 1e-9 * std::max(1.0, std::abs(a)); }

}  // namespace

std::string check_gradient(const ModelScene& scene, std::string& detail) {
  std::vector<How> cases{{"options", false, Form::hard}};
  const bool numbers = scene.model->structure().numbers();
  if (numbers)
    cases[0].name = "numbers";
  else
    cases.push_back({"weights", false, Form::spread});
  if (scene.with_posterior) cases.push_back({"posterior", true, Form::hard});
  double worst = 0;
  std::vector<std::string> names;
  for (const auto& how : cases) {
    auto& model = how.posterior ? *scene.with_posterior : *scene.model;
    if (auto wrong = against_differences(model, scene.batch, how, worst); !wrong.empty()) return wrong;
    names.push_back(how.name);
  }
  detail = fmt::format("{}: off by at most {:.1e}", fmt::join(names, ", "), worst);
  return "";
}

std::string check_outcomes(const ModelScene& scene, std::string& detail) {
  const auto& model = *scene.model;
  const auto [index, declared] = chosen(scene);
  const auto batch = scene.examples({index});
  double mass = 0, mean = 0, count = 0;
  std::vector<double> gradient(model.parameters().size()), one(gradient.size());
  const bool all = each_outcome(model, batch, {}, [&](Episode<double>& run) {
    const auto log_p = log_probability(run, DrawnFrom::prior), weighted = multiply(exp(log_p), loss(run));
    mass += std::exp(log_p.item());
    mean += weighted.item();
    differentiate(weighted, model.parameters(), one);
    for (std::size_t i = 0; i < one.size(); ++i) gradient[i] += one[i];
    return ++count <= declared;
  });
  if (!all) return fmt::format("declared are {:.6g} outcomes (Model::asked), there are more", declared);
  if (!(std::abs(mass - 1) < 1e-9)) return fmt::format("the probabilities of all outcomes sum to {:.9g}", mass);
  const auto truth = measurement::exact_reference(Target(), model, batch, 1e6);
  if (!near(mean, truth.value))
    return fmt::format("the mean loss of all outcomes is {:.9g}, by enumeration {:.9g}", mean, truth.value);
  const double gap = largest_difference(gradient, truth.gradient) / std::max(1.0, measurement::largest(gradient));
  if (!(gap < 1e-9)) return fmt::format("the gradient over all outcomes is {:.2g} off that by enumeration", gap);
  detail = fmt::format("{}{} outcomes, gradient off by {:.1e}", count,
                       count < declared ? fmt::format(" of at most {}", declared) : "", gap);
  return "";
}

std::string check_posterior(const ModelScene& scene, std::string& detail) {
  const auto& model = *scene.with_posterior;
  const auto batch = scene.examples({chosen(scene).first});
  double prior = 0, posterior = 0, mean = 0, divergence = 0, outside = 0;
  each_outcome(model, batch, {DrawnFrom::posterior, TargetTerms::Divergence::none}, [&](Episode<double>& run) {
    const double log_p = log_probability(run, DrawnFrom::prior).item(), p = std::exp(log_p),
                 log_q = log_probability(run, DrawnFrom::posterior).item(), q = std::exp(log_q);
    prior += p;
    posterior += q;
    mean += p * loss(run).item();
    if (p == 0)
      outside += q;
    else if (q > 0)
      divergence += q * (log_q - log_p);
    return true;
  });
  for (const auto& [name, mass] : {std::pair{"prior", prior}, {"posterior", posterior}})
    if (!(std::abs(mass - 1) < 1e-9))
      return fmt::format("the probabilities of all outcomes sum to {:.9g} by the {}", mass, name);
  if (!(outside < 1e-9)) return fmt::format("the posterior gives {:.3g} to outcomes that the prior gives 0", outside);
  if (!(divergence > -1e-9)) return fmt::format("the divergence of the posterior from the prior is {:.6g}", divergence);
  const double plain = measurement::exact_reference(Target(), *scene.model, batch, 1e6).value;
  if (!near(mean, plain))
    return fmt::format("under the prior the mean loss is {:.9g}, without the posterior {:.9g}", mean, plain);
  detail = fmt::format("divergence {:.3g} nats", divergence);
  return "";
}

}  // namespace hardgrad::verification
