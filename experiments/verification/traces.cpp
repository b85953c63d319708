#include "experiments/verification/traces.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "core/choice/declared.hpp"
#include "core/choice/normal.hpp"

namespace hardgrad::verification {
namespace {

/// The row of `rows` for sample m of example b; it may represent all samples.
int row_of_sample(const Rows& rows, int b, int m) {
  int first = -1, count = 0;
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows.example[r] == b) {
      if (count++ == 0) first = static_cast<int>(r);
    }
  if (count == 0) return -1;
  return count == 1 ? first : first + std::min(m, count - 1);
}

template <class T>
Trace::Question seen(const Question<T>& question, int row) {
  Trace::Question q{std::string(question.site.name), question.step, {}, {}, {}};
  const int D = question.site.columns;
  for (int d = 0; d < D; ++d) {
    const auto answers = static_cast<int>(question.distribution->support_size(static_cast<std::size_t>(row) * D + d));
    if (answers == 1) continue;
    q.column.push_back(d);
    q.options.push_back(answers);
    q.law.push_back(question.distribution->parameters_at(row, d));
  }
  return q;
}

bool alike(double a, double b, double tolerance) {
  return a == b || std::abs(a - b) <= tolerance * std::max({1.0, std::abs(a), std::abs(b)});
}

}  // namespace

GivenChoices drawn_by(Key key) {
  return [key](const ChoiceIndex& at, int options) {
    const double u = KeyedRandomness(key).uniform({.example = at.example,
                                                   .replica = static_cast<std::uint32_t>(at.sample),
                                                   .step = static_cast<std::uint32_t>(at.question),
                                                   .column = static_cast<std::uint32_t>(at.choice)});
    return options > 0 ? std::floor(u * options) : 2 * u - 1;
  };
}

template <class T>
Choice<T> ScriptedHandler<T>::choose(Tape<T>& tape, const Question<T>& question) {
  const auto& site = question.site;
  const auto D = static_cast<std::size_t>(site.columns);
  const auto rows = fan_out(question, site.rows->is_root() ? samples_ : 1);
  const bool numbers = !question.has_options();
  std::vector<double> answer(rows->size() * D);
  for (std::size_t r = 0; r < rows->size(); ++r) {
    const auto parent = static_cast<std::size_t>(rows->parent[r]);
    if (!question.chooses(parent)) continue;
    ChoiceIndex at{batch_.id[rows->example[r]], rows->replica[r], asked_[{rows->example[r], rows->replica[r]}]++, 0};
    for (std::size_t d = 0; d < D; ++d) {
      const auto options = static_cast<int>(question.distribution->support_size(parent * D + d));
      if (options == 1) continue;
      answer[r * D + d] = answers_(at, options);
      ++at.choice;
    }
  }
  if (numbers) {
    const auto value = tape.constant(rows->size(), D);
    std::copy(answer.begin(), answer.end(), tape.mutable_value(value).data);
    return {rows, ChosenNumbers<T>{value}};
  }
  std::vector<int> option(answer.begin(), answer.end());
  const auto hard = question.distribution->unrank(rows, option);
  if (form_ == Form::hard) return hard;
  const auto ones = hard.one_hot(tape, question.distribution->logits().cols());
  const auto from = question.parent_choices(*rows);
  const double on_it = form_ == Form::one_hot ? 1 : 0.6;
  for (std::size_t c = 0; c < option.size(); ++c) {
    const int options = question.distribution->options()[from[c]];
    T* w = tape.mutable_value(ones).row(c);
    const double each = (1 - on_it) * std::accumulate(w, w + options, 0.0) / options;
    for (int i = 0; i < options; ++i) w[i] = static_cast<T>(each + on_it * static_cast<double>(w[i]));
  }
  return {rows, Relaxed<T>{{}, ones, hard.subset_size()}};
}

template <class T>
Traces traces_of(const Model<T>& model, const Episode<T>& run, int samples) {
  Traces traces;
  traces.undeclared = undeclared(model.structure(), run);
  if (!traces.undeclared.empty()) return traces;
  for (const auto& step : run.steps()) {
    traces.asking.push_back(step.question.site.rows);
    traces.columns.push_back(step.question.site.columns);
  }
  for (const auto& cost : run.costs()) traces.paying.push_back(cost.rows);
  for (int b = 0; b < run.examples(); ++b)
    for (int m = 0; m < samples; ++m) {
      auto& trace = traces.of_row.emplace_back();
      for (const auto& [question, choice] : run.steps())
        if (const int row = row_of_sample(*question.site.rows, b, m); row >= 0 && question.chooses(row))
          trace.questions.push_back(seen(question, row));
      for (const auto& cost : run.costs()) {
        auto& paid = trace.costs.emplace_back();
        const int row = row_of_sample(*cost.rows, b, m);
        if (row < 0) continue;
        const auto of = cost.by_column ? cost.by_column.value() : cost.loss.value();
        paid.assign(of.row(row), of.row(row) + of.cols);
        for (double x : paid) trace.loss += x;
      }
    }
  return traces;
}

template <class T>
Traces traces_of(const Model<T>& model, const Batch& batch, const GivenChoices& answers, const RunSettings& settings) {
  Tape<T> tape;
  ScriptedHandler<T> handler(batch, answers, settings.samples, settings.form);
  Episode<T> run(tape, handler, batch.examples());
  if (settings.unshared) run.use_independent_rows();
  model.run(batch, run);
  return traces_of(model, run, settings.samples);
}

std::string difference(const Trace& a, const Trace& b, double tolerance) {
  if (!alike(a.loss, b.loss, tolerance)) return fmt::format("the loss is {:.9g}, not {:.9g}", a.loss, b.loss);
  if (a.questions.size() != b.questions.size())
    return fmt::format("there are {} questions with a choice, not {}", a.questions.size(), b.questions.size());
  for (std::size_t n = 0; n < a.questions.size(); ++n) {
    const auto &p = a.questions[n], &q = b.questions[n];
    const auto where = fmt::format("question {} with a choice ", n + 1);
    if (p.site != q.site) return fmt::format("{} is of site `{}`, not `{}`", where, p.site, q.site);
    if (p.options != q.options) return fmt::format("{} (site `{}`) has other columns or options", where, p.site);
    for (std::size_t c = 0; c < p.law.size(); ++c)
      for (std::size_t i = 0; i < p.law[c].size(); ++i)
        if (!alike(p.law[c][i], q.law[c][i], tolerance))
          return fmt::format("{} (site `{}`) has the distribution's number {} at {:.9g}, not {:.9g}", where, p.site, i + 1,
                             p.law[c][i], q.law[c][i]);
  }
  return "";
}

#define HARDGRAD_INSTANTIATE(T)                                                                      \
  template class ScriptedHandler<T>;                                                                 \
  template Traces traces_of(const Model<T>&, const Batch&, const GivenChoices&, const RunSettings&); \
  template Traces traces_of(const Model<T>&, const Episode<T>&, int);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad::verification
