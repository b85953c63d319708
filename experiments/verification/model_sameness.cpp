#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/tape.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/model_checks.hpp"
#include "experiments/verification/traces.hpp"

namespace hardgrad::verification {
namespace {

constexpr double rounding = 1e-9;
const GivenChoices answers = drawn_by(Key(19));

/// The first entry of `now` that differs from `before`, in the same order: its name and the difference.
template <class Who>
std::string first_difference(const Traces& now, const Traces& before, double tolerance, Who who) {
  if (!now.undeclared.empty()) return now.undeclared;
  if (now.of_row.size() != before.of_row.size()) return "the rows differ";
  for (std::size_t i = 0; i < now.of_row.size(); ++i)
    if (const auto off = difference(now.of_row[i], before.of_row[i], tolerance); !off.empty()) return who(i) + off;
  return "";
}

/// Samples that agree pairwise in their first answer and differ in all later ones.
GivenChoices branching() {
  return [](const ChoiceIndex& at, int options) {
    auto place = at;
    if (at.question == 0) place.sample /= 2;
    return answers(place, options);
  };
}

/// Gradient of the mixture for a run with these answers.
std::vector<double> gradient_of(const ModelScene& scene, const GivenChoices& given, int samples, bool apart) {
  Tape<double> tape;
  ScriptedHandler<double> handler(scene.batch, given, samples);
  Episode<double> run(tape, handler, scene.batch.examples());
  if (apart) run.use_independent_rows();
  scene.model->run(scene.batch, run);
  std::vector<double> gradient(scene.model->parameters().size());
  differentiate(mixture(run), scene.model->parameters(), gradient);
  return gradient;
}

}  // namespace

std::string check_repeated(const ModelScene& scene, std::string& detail) {
  const auto& batch = scene.batch;
  const auto example = [](std::size_t b) { return fmt::format("example {}: ", b + 1); };
  const auto first = traces_of(*scene.model, batch, answers);
  if (!first.undeclared.empty()) return first.undeclared;
  for (std::size_t b = 0; b < first.of_row.size(); ++b)
    if (!std::isfinite(first.of_row[b].loss)) return fmt::format("example {} has a loss of {}", b + 1, first.of_row[b].loss);
  if (auto off = first_difference(traces_of(*scene.model, batch, answers), first, 0, example); !off.empty())
    return "a second time, " + off;
  Tape<double> tape;
  for (const char* when : {"on a tape, ", "on a tape that was rewound, "}) {
    ScriptedHandler<double> handler(batch, answers);
    Episode<double> run(tape, handler, batch.examples());
    scene.model->run(batch, run);
    if (auto off = first_difference(traces_of(*scene.model, run, 1), first, 0, example); !off.empty()) return when + off;
    tape.rewind();
  }
  double most = 0;
  for (const auto& trace : first.of_row) most = std::max(most, std::abs(trace.loss));
  detail = fmt::format("losses up to {:.3g}", most);
  const auto narrow = first_difference(traces_of(*scene.narrow, batch, answers), first, 1e-3, example);
  return narrow.empty() ? "" : "in float, " + narrow;
}

std::string check_batching(const ModelScene& scene, std::string& detail) {
  const auto together = traces_of(*scene.model, scene.batch, answers);
  if (!together.undeclared.empty()) return together.undeclared;
  for (int b = 0; b < scene.batch.examples(); ++b) {
    const auto alone = traces_of(*scene.model, scene.batch.select({b}), answers);
    if (!alone.undeclared.empty()) return alone.undeclared;
    if (const auto off = difference(alone.of_row[0], together.of_row[b], rounding); !off.empty())
      return fmt::format("example {} alone differs from the batch: {}", b + 1, off);
  }
  detail = fmt::format("{} examples", scene.batch.examples());
  return "";
}

std::string check_padding(const ModelScene& scene, std::string& detail) {
  const auto padded = traces_of(*scene.model, scene.batch, answers);
  if (!padded.undeclared.empty()) return padded.undeclared;
  int shorter = 0;
  for (int b = 0; b < scene.batch.examples(); ++b) {
    const auto trimmed = scene.examples({scene.index[b]});
    const auto differs = [&](const auto& fields, const auto& whole) {
      return std::any_of(fields.begin(), fields.end(),
                         [&](const auto& field) { return row_size(field.second) != row_size(whole.at(field.first)); });
    };
    shorter += differs(trimmed.integers, scene.batch.integers) || differs(trimmed.reals, scene.batch.reals);
    const auto alone = traces_of(*scene.model, trimmed, answers);
    if (!alone.undeclared.empty()) return alone.undeclared;
    if (const auto off = difference(alone.of_row[0], padded.of_row[b], rounding); !off.empty())
      return fmt::format("example {} without padding differs from the batch: {}", b + 1, off);
  }
  detail = fmt::format("{} of {} examples are padded", shorter, scene.batch.examples());
  return "";
}

std::string check_samples(const ModelScene& scene, std::string& detail) {
  constexpr int samples = 3;
  const auto all = traces_of(*scene.model, scene.batch, answers, {.samples = samples});
  if (!all.undeclared.empty()) return all.undeclared;
  for (int m = 0; m < samples; ++m) {
    const auto one = traces_of(*scene.model, scene.batch, [m](const ChoiceIndex& at, int options) {
      auto place = at;
      place.sample = m;
      return answers(place, options);
    });
    if (!one.undeclared.empty()) return one.undeclared;
    for (int b = 0; b < scene.batch.examples(); ++b)
      if (const auto off = difference(all.of_row[b * samples + m], one.of_row[b], rounding); !off.empty())
        return fmt::format("sample {} of example {} differs from the sample alone: {}", m + 1, b + 1, off);
  }
  detail = fmt::format("{} samples of {} examples", samples, scene.batch.examples());
  return "";
}

std::string check_sharing(const ModelScene& scene, std::string& detail) {
  constexpr int samples = 4;
  const auto given = branching();
  const auto shared = traces_of(*scene.model, scene.batch, given, {.samples = samples}),
             apart = traces_of(*scene.model, scene.batch, given, {.samples = samples, .unshared = true});
  if (!apart.undeclared.empty()) return apart.undeclared;
  auto off = first_difference(shared, apart, rounding, [](std::size_t i) {
    return fmt::format("sample {} of example {} differs without shared states: ", i % samples + 1, i / samples + 1);
  });
  if (!off.empty()) return off;
  const auto one = gradient_of(scene, given, samples, false), other = gradient_of(scene, given, samples, true);
  const double gap = largest_difference(one, other) / std::max(1.0, measurement::largest(other));
  detail = fmt::format("gradients {:.1e} apart", gap);
  return gap < rounding ? "" : "gradients with and without shared states are " + fmt::format("{:.2g} apart", gap);
}

std::string check_one_hot(const ModelScene& scene, std::string& detail) {
  const auto hard = traces_of(*scene.model, scene.batch, answers),
             weights = traces_of(*scene.model, scene.batch, answers, {.form = Form::one_hot});
  if (!hard.undeclared.empty()) return hard.undeclared;
  if (!weights.undeclared.empty()) return weights.undeclared;
  double most = 0;
  for (std::size_t b = 0; b < hard.of_row.size(); ++b) {
    const double a = hard.of_row[b].loss, w = weights.of_row[b].loss, off = std::abs(w - a) / std::max(1.0, std::abs(a));
    if (!(off <= rounding))
      return fmt::format("example {} costs {:.9g} with options, {:.9g} with all weight on them", b + 1, a, w);
    most = std::max(most, off);
  }
  detail = fmt::format("losses {:.1e} apart", most);
  return "";
}

}  // namespace hardgrad::verification
