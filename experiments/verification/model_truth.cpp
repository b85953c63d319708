#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/gradient.hpp"
#include "experiments/measurement/truth.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/mixture.hpp"
#include "experiments/verification/model_checks.hpp"
#include "experiments/verification/ways.hpp"

namespace hardgrad::verification {
namespace {

constexpr double most_outcomes = 800;  // each is a run
constexpr double slope_error = 1e-5;

/// A way to answer, of which a gradient is checked.
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
    ScriptedChooser<double> chooser(batch, drawn_by(Key(23)), 2, how.form);
    Episode<double> run(tape, chooser, batch.examples(), terms);
    model.run(batch, run);
    return mixture(run);
  };
  std::vector<double> gradient(model.parameters().size());
  differentiate(value(), model.parameters(), gradient);
  KeyedRandomness random(Key(29));
  std::uint32_t n = 0;
  for (auto& parameter : model.parameters()) {
    const auto kept = parameter.value.data;
    std::vector<double> direction(kept.size());
    double slope = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      direction[i] = 2 * random.uniform({.index = n++}) - 1;
      slope += direction[i] * gradient[parameter.offset + i];
    }
    const auto at = [&](double step) {
      for (std::size_t i = 0; i < kept.size(); ++i) parameter.value.data[i] = kept[i] + step * direction[i];
      return value().item();
    };
    double best = std::numeric_limits<double>::infinity(), differences = 0;
    for (double step : {1e-5, 1e-6, 1e-7}) {  // smaller ones where a kink is near
      const double found = (at(step) - at(-step)) / (2 * step), off = std::abs(found - slope) / (1 + std::abs(slope));
      if (off < best) best = off, differences = found;
      if (best < slope_error) break;
    }
    parameter.value.data = kept;
    worst = std::max(worst, best);
    if (!(best < slope_error))
      return fmt::format("{}, parameter {}: backward gives {:.6g} along a direction, differences give {:.6g}", how.name,
                         parameter.name, slope, differences);
  }
  return "";
}

/// One complete set of choices after the other of the batch's only example: of the last choice that has one the next option.
class Outcomes {
 public:
  /// The answers of this outcome; a run asks for all of them.
  Answers answers() {
    asked_ = 0;
    return [this](const Place&, int options) {
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
  std::vector<std::pair<int, int>> answer_;  // and of how many options
};

/// Of the training split's first examples the one with most outcomes of those that have few enough, and how many; -1 if none
/// has.
std::pair<int, double> chosen(const ModelScene& scene, double& fewest) {
  std::pair<int, double> found{-1, 1};
  fewest = std::numeric_limits<double>::infinity();
  const auto examples = std::min<std::size_t>(32, scene.task->size(tasks::Split::train));
  for (int i = 0; i < static_cast<int>(examples); ++i) {
    const double n = scene.model->outcomes(scene.examples({i}))[0];
    if (n > found.second && n <= most_outcomes) found = {i, n};
    if (n > 1) fewest = std::min(fewest, n);
  }
  return found;
}

}  // namespace

std::string check_gradient(const ModelScene& scene, std::string& detail) {
  std::vector<How> ways{{"options", false, Form::hard}};
  const bool numbers = scene.model->structure().numbers();
  if (numbers)
    ways[0].name = "numbers";
  else
    ways.push_back({"weights", false, Form::spread});
  if (scene.with_posterior) ways.push_back({"posterior", true, Form::hard});
  double worst = 0;
  std::vector<std::string> names;
  for (const auto& how : ways) {
    auto& model = how.posterior ? *scene.with_posterior : *scene.model;
    if (auto wrong = against_differences(model, scene.batch, how, worst); !wrong.empty()) return wrong;
    names.push_back(how.name);
  }
  detail = fmt::format("{}: off by at most {:.1e}", fmt::join(names, ", "), worst);
  return "";
}

std::string check_outcomes(const ModelScene& scene, std::string& detail) {
  const auto& model = *scene.model;
  double fewest;
  const auto [index, declared] = chosen(scene, fewest);
  if (index < 0)
    throw NotExact(std::isfinite(fewest)
                       ? fmt::format("an example has at least {:.6g} outcomes, more than {}", fewest, most_outcomes)
                       : "no example has a choice");
  const auto batch = scene.examples({index});
  const auto& parameters = model.parameters();
  Outcomes outcomes;
  Tape<double> tape;
  double mass = 0, mean = 0, count = 0;
  std::vector<double> gradient(parameters.size()), one(parameters.size());
  do {
    tape.clear();
    ScriptedChooser<double> chooser(batch, outcomes.answers());
    Episode<double> run(tape, chooser, 1);
    model.run(batch, run);
    auto log_p = tape.constant(1, 1), cost = tape.constant(1, 1);
    for (std::size_t t = 0; t < run.steps().size(); ++t) log_p = add(log_p, run.log_probability(static_cast<int>(t)));
    for (const auto& paid : run.costs()) cost = add(cost, paid.loss);
    const auto weighted = multiply(exp(log_p), cost);
    mass += std::exp(log_p.item());
    mean += weighted.item();
    differentiate(weighted, parameters, one);
    for (std::size_t i = 0; i < one.size(); ++i) gradient[i] += one[i];
    if (++count > declared) return fmt::format("declared are {:.6g} outcomes (Model::asked), there are more", declared);
  } while (outcomes.next());
  if (!(std::abs(mass - 1) < 1e-9)) return fmt::format("the probabilities of all outcomes sum to {:.9g}", mass);
  const auto truth = measurement::exact_truth(Target(), model, batch, 1e6);
  const double off = std::abs(truth.value - mean) / std::max(1.0, std::abs(mean));
  if (!(off < 1e-9)) return fmt::format("the mean loss of all outcomes is {:.9g}, by enumeration {:.9g}", mean, truth.value);
  const double gap = largest_difference(gradient, truth.gradient) / std::max(1.0, measurement::largest(gradient));
  if (!(gap < 1e-9)) return fmt::format("the gradient over all outcomes is {:.2g} off that by enumeration", gap);
  detail = fmt::format("{}{} outcomes, gradient off by {:.1e}", count,
                       count < declared ? fmt::format(" of at most {}", declared) : "", gap);
  return "";
}

}  // namespace hardgrad::verification
