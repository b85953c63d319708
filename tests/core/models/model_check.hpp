// Helpers of the model tests: small models with nonzero parameters, given answers, and the check of a whole model's gradient
// against finite differences.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/dropout.hpp"
#include "experiments/verification/traces.hpp"

namespace hardgrad::testing {

using Options = std::vector<std::vector<int>>;  ///< [step][row], or [step][row D + d] of D columns

/// Answers with constant weights: all on the given option, or spread.
class ForcedWeights final : public Handler<double> {
 public:
  ForcedWeights(Options option, double sharpness) : forced_(std::move(option)), sharpness_(sharpness) {}
  Choice<double> choose(Tape<double>& tape, const Question<double>& question) override {
    auto hard = forced_.choose(tape, question);
    const std::size_t S = question.categories().log_p().cols();
    const auto cells = question.parent_choices(*hard.rows);
    Array<double> weights = zeros<double>({cells.size(), S});
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const int n = question.categories().options()[cells[c]];
      for (int i = 0; i < n; ++i) weights(c, i) = (1 - sharpness_) / n;
      weights(c, hard.option()[c]) += sharpness_;
    }
    return {hard.rows, Relaxed<double>{{}, tape.constant(MatrixView<const double>{weights.data(), cells.size(), S})}};
  }

 private:
  ForcedHandler<double> forced_;
  double sharpness_;
};

/// Two images of 6 x 5 pixels, of three classes.
inline const Dimensions two_images_dimensions{{"height", 6}, {"width", 5}, {"classes", 3}};
inline Batch two_images() {
  Batch batch;
  batch.id = {8, 9};
  batch.reals["image"] = zeros<double>({2, 6, 5});
  KeyedRandomness random(Key(5));
  for (std::uint32_t i = 0; i < 60; ++i) batch.reals["image"].flat(i) = random.uniform({i});
  batch.integers["label"] = shaped<int>({2}, {2, 0});
  return batch;
}

/// Parameters in [-0.7, 0.7], so that nothing is nearly linear.
inline std::unique_ptr<Model<double>> lively(const std::string& spec, const Dimensions& dimensions, bool posterior = false) {
  auto model = make_model<double>(Spec::parse(spec), dimensions, Key(7), posterior);
  KeyedRandomness random(Key(11));
  std::uint32_t n = 0;
  for (auto& p : model->parameters())
    for (auto& x : p.value) x = 1.4 * random.uniform({n++}) - 0.7;
  return model;
}

/// The sum of the costs of each row, in a run that branches only at the first choice. Costs before it count for each row.
inline std::vector<double> losses(const Model<double>& model, const Batch& batch, Handler<double>& handler) {
  Tape<double> tape;
  Episode<double> episode(tape, handler, batch.examples());
  model.run(batch, episode);
  const auto& example = episode.costs().back().rows->example;
  std::vector<double> total(example.size());
  for (const auto& cost : episode.costs())
    for (std::size_t r = 0; r < total.size(); ++r) total[r] += cost.loss.value().data[cost.rows->is_root() ? example[r] : r];
  return total;
}

/// The largest difference of two vectors.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  return worst;
}

using verification::mixture;

/// Every term that a target may need from a posterior.
constexpr TargetTerms with_posterior_terms{DrawnFrom::posterior, TargetTerms::Divergence::analytic};

using MakeHandler = std::function<std::unique_ptr<Handler<double>>()>;

/// Largest |analytic - numeric| / (1 + |numeric|) over all parameters, and that parameter's name. `wrong` omits the log
/// probabilities on the analytic side only: a deliberate bug.
inline std::pair<double, std::string> gradient_error(Model<double>& model, const Batch& batch, const MakeHandler& make,
                                                     bool wrong = false, TargetTerms terms = {}) {
  Tape<double> tape;
  const auto value = [&](bool complete) {
    tape.clear();
    auto handler = make();
    auto episode = std::make_unique<Episode<double>>(tape, *handler, batch.examples(), terms);
    model.run(batch, *episode);
    return mixture(*episode, complete);
  };
  std::vector<double> analytic(model.parameters().size());
  tape.backward(value(!wrong));
  tape.add_gradient(model.parameters(), std::span<double>(analytic));
  std::pair<double, std::string> worst{0, ""};
  for (auto& p : model.parameters())
    for (std::size_t i = 0; i < p.value.size(); ++i) {
      const double kept = p.value.flat(i), step = 1e-5;
      p.value.flat(i) = kept + step;
      const double above = value(true).item();
      p.value.flat(i) = kept - step;
      const double below = value(true).item();
      p.value.flat(i) = kept;
      const double numeric = (above - below) / (2 * step);
      const double error = std::abs(analytic[p.offset + i] - numeric) / (1 + std::abs(numeric));
      if (!(error <= worst.first)) worst = {error, p.name + "[" + std::to_string(i) + "]"};
    }
  return worst;
}

/// Checks that the gradient error is small. `how` names the answers in messages.
inline void check_gradient(const char* how, Model<double>& model, const Batch& batch, const MakeHandler& make,
                           TargetTerms terms = {}, double tolerance = 1e-7) {
  CAPTURE(how);
  const auto [error, where] = gradient_error(model, batch, make, false, terms);
  CAPTURE(where);
  CHECK(error < tolerance);
}

/// Every sequence of one option out of `options[t]` at each step t, as one example's choices.
inline std::vector<std::vector<int>> every_path(const std::vector<int>& options) {
  std::vector<std::vector<int>> paths{{}};
  for (int n : options) {
    std::vector<std::vector<int>> longer;
    for (const auto& path : paths)
      for (int i = 0; i < n; ++i) {
        longer.push_back(path);
        longer.back().push_back(i);
      }
    paths = std::move(longer);
  }
  return paths;
}

/// Expected loss of a single example, running every path separately. `options` of every choice; `columns` of them make a step.
inline double expected_loss_by_paths(const Model<double>& model, const Batch& batch, const std::vector<int>& options,
                                     std::size_t columns = 1) {
  double total = 0, mass = 0;
  for (const auto& path : every_path(options)) {
    Options forced(path.size() / columns);
    for (std::size_t i = 0; i < path.size(); ++i) forced[i / columns].push_back(path[i]);
    ForcedHandler<double> handler(forced);
    Tape<double> tape;
    Episode<double> episode(tape, handler, 1);
    model.run(batch, episode);
    double log_p = 0, loss = 0;
    for (std::size_t t = 0; t < forced.size(); ++t) {
      const auto of_options = episode.steps()[t].question.categories().log_p().value();  // [columns, S]
      for (std::size_t d = 0; d < columns; ++d) log_p += of_options(d, forced[t][d]);
    }
    for (const auto& cost : episode.costs()) loss += cost.loss.item();
    total += std::exp(log_p) * loss;
    mass += std::exp(log_p);
  }
  return mass > 0.999999999 && mass < 1.000000001 ? total : std::nan("");
}

/// The same from one run in which every option is a row.
inline double expected_loss_by_rows(const Model<double>& model, const Batch& batch) {
  EnumerateHandler<double> handler;
  Tape<double> tape;
  Episode<double> episode(tape, handler, batch.examples());
  model.run(batch, episode);
  double total = 0;
  for (const auto& cost : episode.costs()) {
    const auto log_p = episode.path_log_probability(cost.rows).value();
    for (std::size_t r = 0; r < cost.rows->size(); ++r) total += std::exp(log_p.data[r]) * cost.loss.value().data[r];
  }
  return total;
}

/// The forced choices of example `b` alone.
inline Options of_example(const Options& options, int b, int columns = 1) {
  Options result;
  for (const auto& step : options)
    result.emplace_back(step.begin() + static_cast<std::ptrdiff_t>(b) * columns, step.begin() + (b + 1) * columns);
  return result;
}

/// Every row `copies` times in succession: ForcedHandler's input if each example becomes `copies` equal rows.
inline Options copied(const Options& options, int copies, int columns = 1) {
  Options result;
  for (const auto& step : options) {
    result.emplace_back();
    for (auto row = step.begin(); row != step.end(); row += columns)
      for (int c = 0; c < copies; ++c) result.back().insert(result.back().end(), row, row + columns);
  }
  return result;
}

/// Checks dropout of the values `names`; `spec` ends in "dropout=". Without keys nothing is dropped; with keys the loss of an
/// example depends on its own key alone, and the gradient is that of the loss.
inline void check_dropout(const std::string& spec, const Dimensions& dimensions, const Batch& batch, const Options& forced,
                          const std::set<std::string>& names) {
  CAPTURE(spec);
  auto model = lively(spec + "0.4]", dimensions);
  const auto run = [](const Model<double>& network, const Batch& data, const Options& options) {
    ForcedHandler<double> handler(options);
    return losses(network, data, handler);
  };
  const auto plain = lively(spec + "0]", dimensions);
  const auto whole = run(*plain, batch, forced);
  CHECK(run(*model, batch, forced) == whole);
  auto keyed = batch;
  add_dropout(keyed, Key(3));
  const auto less = run(*model, keyed, forced);
  for (int b = 0; b < batch.examples(); ++b) {
    CHECK(std::abs(less[b] - whole[b]) > 1e-6);
    CHECK(run(*model, keyed.select({b}), of_example(forced, b))[0] == doctest::Approx(less[b]).epsilon(1e-12));
  }
  std::set<std::string> dropped;
  for (const auto& [name, factors] : model->dropout_factors(keyed)) {
    CAPTURE(name);
    CHECK(extent(factors, 0) == batch.id.size());
    const auto gone = std::count(factors.begin(), factors.end(), 0.0);
    CHECK((gone > 0 && static_cast<std::size_t>(gone) < factors.size()));
    for (double x : factors) CHECK((x == 0 || x == doctest::Approx(1 / 0.6).epsilon(1e-12)));
    dropped.insert(name);
  }
  CHECK(dropped == names);
  CHECK(model->dropout_factors(batch).empty());
  CHECK(plain->dropout_factors(keyed).empty());
  check_gradient("dropout", *model, keyed, [&] { return std::make_unique<ForcedHandler<double>>(copied(forced, 2)); });
}

}  // namespace hardgrad::testing
