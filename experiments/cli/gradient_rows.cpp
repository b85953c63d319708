#include "experiments/cli/gradient_rows.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

namespace hardgrad::cli {
namespace {

// For each final row, the row of `rows` that it continues; empty if they are on different branches.
std::optional<std::vector<int>> ancestors(const RowsPtr& final_rows, const RowsPtr& rows) {
  std::vector<int> at(final_rows->size());
  for (std::size_t r = 0; r < at.size(); ++r) at[r] = static_cast<int>(r);
  for (auto walk = final_rows; walk; walk = walk->origin) {
    if (walk == rows) return at;
    if (walk->is_root()) break;
    for (auto& r : at) r = walk->parent[r];
  }
  if (rows->is_root()) return final_rows->example;
  // Independent steps each branch from the root in the same order, so equal rows are the same sample.
  if (rows->example == final_rows->example && rows->replica == final_rows->replica) {
    for (std::size_t r = 0; r < at.size(); ++r) at[r] = static_cast<int>(r);
    return at;
  }
  return {};
}

// The shape of arrays with one value per choice: [T, R], or [T, R, D] if a query has several columns; and the index of column d
// of row r at step t.
struct Cells {
  std::size_t steps, rows, columns = 1;
  template <class Steps>
  Cells(const Steps& asked, std::size_t rows) : steps(asked.size()), rows(rows) {
    for (const auto& step : asked) columns = std::max<std::size_t>(columns, step.question.site.columns);
  }
  std::vector<std::size_t> shape() const { return columns == 1 ? std::vector{steps, rows} : std::vector{steps, rows, columns}; }
  std::vector<std::size_t> shape(std::size_t options) const {
    auto all = shape();
    all.push_back(options);
    return all;
  }
  std::size_t operator()(std::size_t t, std::size_t r, std::size_t d) const { return (t * rows + r) * columns + d; }
};

// Losses; false if rows of different steps do not correspond.
template <class T>
bool describe_losses(const Episode<T>& episode, const RowsPtr& final_rows, storage::GradientDump<T>& dump) {
  const auto R = final_rows->size();
  dump.loss = zeros<T>({episode.costs().size(), R});
  for (std::size_t c = 0; c < episode.costs().size(); ++c) {
    const auto& cost = episode.costs()[c];
    const auto at = ancestors(final_rows, cost.rows);
    if (!at) return false;
    for (std::size_t r = 0; r < R; ++r) dump.loss.flat(c * R + r) = cost.loss.value().data[(*at)[r]];
  }
  return true;
}

// For continuous choices: values, parameters of their distributions and log-densities, [T, R, D] each.
template <class T>
bool describe_numbers(Episode<T>& episode, const RowsPtr& final_rows, storage::GradientDump<T>& dump) {
  const auto& steps = episode.steps();
  const auto R = final_rows->size();
  std::size_t D = 1;
  for (const auto& step : steps) D = std::max<std::size_t>(D, step.question.site.columns);
  const auto put = [&](const std::string& name, std::size_t t, MatrixView<const T> x, auto&& row) {
    auto array = std::find_if(dump.numbers.begin(), dump.numbers.end(), [&](const auto& known) { return known.name == name; });
    if (array == dump.numbers.end()) array = dump.numbers.insert(array, {name, zeros<T>({steps.size(), R, D})});
    for (std::size_t r = 0; r < R; ++r) std::copy_n(x.row(row(r)), x.cols, &array->value.flat((t * R + r) * D));
  };
  const bool posterior = episode.terms().drawn_from == DrawnFrom::posterior;
  for (std::size_t t = 0; t < steps.size(); ++t) {
    const auto& question = steps[t].question;
    const auto& choice = steps[t].choice;
    const auto at = ancestors(final_rows, choice.rows);
    if (!at || !choice.numbers()) return false;
    const auto own = [&](std::size_t r) { return static_cast<std::size_t>((*at)[r]); };
    const auto asked = [&](std::size_t r) { return static_cast<std::size_t>(choice.rows->parent[own(r)]); };
    put("value", t, choice.value().value(), own);
    for (const auto& [name, x] : question.site.prior->parameters()) put(std::string(name), t, x.value(), asked);
    if (posterior)
      for (const auto& [name, x] : question.distribution->parameters())
        put("posterior_" + std::string(name), t, x.value(), asked);
    if (!choice.has_probability()) continue;
    const auto step = static_cast<int>(t);
    put("log_prob", t, episode.log_probability_by_column(step, DrawnFrom::prior).value(), own);
    if (posterior) put("posterior_log_prob", t, episode.log_probability_by_column(step, DrawnFrom::posterior).value(), own);
  }
  return true;
}

// For choices among options: options or weights (of a subset 0 and 1), logits, log-probabilities.
template <class T>
bool describe_options(Episode<T>& episode, const RowsPtr& final_rows, storage::GradientDump<T>& dump) {
  const auto& steps = episode.steps();
  const auto R = final_rows->size();
  std::size_t S = 0;
  bool relaxed = false, weighted = false;
  for (const auto& step : steps) {
    S = std::max(S, step.question.site.prior->logits().cols());
    relaxed |= !step.choice.hard();
    weighted |= !step.choice.hard() || step.choice.subset_size() > 1;
  }
  const Cells place(steps, R);
  constexpr T none = -std::numeric_limits<T>::infinity();
  dump.logits = full<T>(place.shape(S), none);
  if (weighted) dump.weights = zeros<T>(place.shape(S));
  if (!weighted) dump.choices = full<int>(place.shape(), -1);
  if (!relaxed) dump.log_prob = zeros<T>(place.shape());
  const bool posterior = episode.terms().drawn_from == DrawnFrom::posterior;
  if (posterior) dump.posterior_logits = full<T>(place.shape(S), none);
  if (posterior && !relaxed) dump.posterior_log_prob = zeros<T>(place.shape());
  for (std::size_t t = 0; t < steps.size(); ++t) {
    const auto& [question, choice] = steps[t];
    const auto at = ancestors(final_rows, choice.rows);
    if (!at) return false;
    const auto logits = question.site.prior->logits().value(), drawn_from = question.distribution->logits().value();
    const auto log_p = [&](DrawnFrom of) { return episode.log_probability_by_column(static_cast<int>(t), of).value(); };
    const auto log_prior = relaxed ? MatrixView<const T>{} : log_p(DrawnFrom::prior);
    const auto log_posterior = relaxed || !posterior ? MatrixView<const T>{} : log_p(DrawnFrom::posterior);
    const std::size_t D = question.site.columns, subset_size = choice.subset_size();
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t d = 0; d < D; ++d) {
        const auto row = static_cast<std::size_t>((*at)[r]), cell = row * D + d;
        const auto asked = static_cast<std::size_t>(choice.rows->parent[row]) * D + d;
        const auto options = static_cast<std::size_t>(question.distribution->options()[asked]);
        const auto to = place(t, r, d);
        std::copy_n(logits.row(asked), options, &dump.logits.flat(to * S));
        if (posterior) std::copy_n(drawn_from.row(asked), options, &dump.posterior_logits.flat(to * S));
        if (weighted && choice.hard()) {
          for (int option : std::span(choice.picked()).subspan(cell * subset_size, subset_size))
            if (option >= 0) dump.weights.flat(to * S + static_cast<std::size_t>(option)) = 1;
        } else if (weighted) {
          std::copy_n(choice.weights().value().row(cell), choice.weights().cols(), &dump.weights.flat(to * S));
        } else if (options > 1) {
          dump.choices.flat(to) = choice.option()[cell];
        }
        if (!relaxed) dump.log_prob.flat(to) = log_prior(row, d);
        if (!relaxed && posterior) dump.posterior_log_prob.flat(to) = log_posterior(row, d);
      }
  }
  return true;
}

// If independent steps branch separately, no row has all steps; only the logits of the examples are available.
template <class T>
bool describe_examples(const Episode<T>& episode, storage::GradientDump<T>& dump) {
  const auto& steps = episode.steps();
  const auto B = episode.root()->size();
  std::size_t S = 0;
  for (const auto& step : steps) {
    if (!step.question.site.rows->is_root()) return false;
    S = std::max(S, step.question.site.prior->logits().cols());
  }
  dump.row_example = episode.root()->example;
  const Cells place(steps, B);
  dump.logits = full<T>(place.shape(S), -std::numeric_limits<T>::infinity());
  for (std::size_t t = 0; t < steps.size(); ++t) {
    const auto& site = steps[t].question.site;
    const auto& prior = *site.prior;
    for (std::size_t cell = 0; cell < prior.options().size(); ++cell)
      std::copy_n(prior.logits().value().row(cell), prior.options()[cell],
                  &dump.logits.flat(place(t, cell / site.columns, cell % site.columns) * S));
  }
  return true;
}

}  // namespace

template <class T>
Described describe_rows(Episode<T>& episode, storage::GradientDump<T>& dump) {
  const auto& steps = episode.steps();
  RowsPtr final_rows = steps.empty() ? episode.root() : steps.back().choice.rows;
  for (const auto& step : steps)  // other steps are repeated for the finest rows
    if (step.choice.rows->size() > final_rows->size()) final_rows = step.choice.rows;
  const bool numbers = std::any_of(steps.begin(), steps.end(), [](const auto& step) { return !step.question.has_options(); });
  storage::GradientDump<T> full = dump, less = dump;
  for (auto* d : {&full, &less})
    for (const auto& step : steps) d->sites.emplace_back(step.question.site.name);
  full.row_example = final_rows->example;
  if (describe_losses(episode, final_rows, full) &&
      (steps.empty() ||
       (numbers ? describe_numbers(episode, final_rows, full) : describe_options(episode, final_rows, full)))) {
    dump = std::move(full);
    return Described::rows;
  }
  if (numbers || !describe_examples(episode, less)) return Described::nothing;
  dump = std::move(less);
  return Described::examples;
}

template Described describe_rows(Episode<float>&, storage::GradientDump<float>&);
template Described describe_rows(Episode<double>&, storage::GradientDump<double>&);

}  // namespace hardgrad::cli
