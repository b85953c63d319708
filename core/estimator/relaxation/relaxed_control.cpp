#include "core/estimator/relaxation/relaxed_control.hpp"

#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/gumbel.hpp"

namespace hardgrad {
namespace {

/// each(cell, first logit, options) of the cells that choose.
template <class F>
void for_choices(const ChoiceLayout& layout, F each) {
  for (std::size_t c = 0; c < layout.cells(); ++c)
    if (layout.options[c] > 1) each(c, layout.logit[c], static_cast<std::size_t>(layout.options[c]));
}

template <class Vector>
auto part(Vector& x, std::size_t first, std::size_t count) {
  return std::span(x).subspan(first, count);
}

}  // namespace

AtLogits RelaxedChoices::weights(const AtLogits& z, double temperature) const {
  AtLogits w{layout, std::vector<double>(z.value.size())};
  for_choices(*layout, [&](std::size_t, std::size_t first, std::size_t n) {
    relaxed(part(z.value, first, n), temperature, part(w.value, first, n));
  });
  return w;
}

AtLogits RelaxedChoices::followed_by(const AtLogits& z) const {
  AtLogits share{layout, std::vector<double>(z.value.size())};
  for_choices(*layout, [&](std::size_t c, std::size_t first, std::size_t n) {
    followed(part(log_p.value, first, n), option[c], part(z.value, first, n), part(share.value, first, n));
  });
  return share;
}

// dw/dz = (diag(w) - w w') / temperature, and dz/dlogits = 1 with the noise held.
AtLogits RelaxedChoices::through_free(double temperature, const AtLogits& slope) const {
  return 1 / temperature * through_softmax(weights(free, temperature), slope);
}

// At log p it is share * h; log p = logits - logsumexp takes p times the sum off.
AtLogits RelaxedChoices::through_given(double temperature, const AtLogits& slope) const {
  const auto h = 1 / temperature * times(through_softmax(weights(given, temperature), slope), followed_by(given));
  auto result = h;
  for_choices(*layout, [&](std::size_t, std::size_t first, std::size_t n) {
    double sum = 0;
    for (std::size_t i = first; i < first + n; ++i) sum += h.value[i];
    for (std::size_t i = first; i < first + n; ++i) result.value[i] -= std::exp(log_p.value[i]) * sum;
  });
  return result;
}

AtLogits RelaxedChoices::control(double temperature, const PerChoice& value, const AtLogits& slope,
                                 const AtLogits& slope_given) const {
  return through_free(temperature, slope) - through_given(temperature, slope_given) - value * score;
}

AtLogits RelaxedChoices::direction(double temperature, const AtLogits& g) const {
  const auto share = followed_by(free);
  auto x = g;
  for_choices(*layout, [&](std::size_t, std::size_t first, std::size_t n) {
    double mean = 0;
    for (std::size_t i = first; i < first + n; ++i) mean += std::exp(log_p.value[i]) * g.value[i];
    for (std::size_t i = first; i < first + n; ++i) x.value[i] -= share.value[i] * (g.value[i] - mean);
  });
  return through_free(temperature, x);
}

template <class T>
void RelaxedRun<T>::relax(const Question<T>& question, const std::vector<Forking>& forking, Fork<T>& fork, Tape<T>& tape,
                          Randomness& random) {
  const auto log_p = question.log_p.value();
  const std::size_t S = log_p.cols, D = question.site.columns;
  auto& free = free_.emplace_back(forking.size() * D * S);
  auto& given = given_.emplace_back(free.size());
  std::vector<T> weights(temperatures_.empty() ? 0 : fork.option.size() * S);
  std::vector<double> l(S), w(S);
  for (std::size_t c = 0; c < forking.size() * D; ++c) {
    const std::size_t g = c / D, d = c % D, asked = forking[g].row * D + d, n = question.site.options[asked];
    const auto member = [&](int k) { return (g * members_ + k) * D + d; };
    if (n > 1) {
      auto where = forking[g].where;
      where.column = static_cast<std::uint32_t>(d);
      std::copy_n(log_p.row(asked), n, l.begin());
      const auto of_choice = part(l, 0, n);
      fork.option[member(0)] = perturb(of_choice, part(free, c * S, n), random, where);
      where.index += static_cast<std::uint32_t>(n);
      if (coupled_)
        std::copy_n(free.begin() + static_cast<std::ptrdiff_t>(c * S), n, given.begin() + static_cast<std::ptrdiff_t>(c * S));
      else
        perturb_given(of_choice, fork.option[member(0)], part(given, c * S, n), random, where);
    }
    for (int k = 0; k < members_ && !weights.empty(); ++k) {
      T* to = weights.data() + member(k) * S;
      if (k == 0 || n == 1) {
        to[fork.option[member(0)]] = 1;
        continue;
      }
      const bool from_given = !coupled_ && k % 2 == 0;  // members: hard, then w and w~ of each temperature
      relaxed(part(from_given ? given : free, c * S, n), temperatures_[coupled_ ? k - 1 : (k - 1) / 2], part(w, 0, n));
      for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<T>(w[i]);
    }
  }
  if (!weights.empty()) fork.weights = tape.input({weights.data(), fork.option.size(), S});
}

template <class T>
RelaxedRun<T>::RelaxedRun(const Problem<T>& problem, int groups, bool coupled, std::vector<double> temperatures)
    : coupled_(coupled),
      temperatures_(std::move(temperatures)),
      members_(1 + static_cast<int>(temperatures_.size()) * (coupled ? 1 : 2)) {
  const auto forker = [&](Tape<T>& tape, const Question<T>& question, const std::vector<Forking>& forking) {
    Fork<T> fork{std::vector<int>(forking.size() * members_ * question.site.columns)};
    relax(question, forking, fork, tape, problem.random);
    return fork;
  };
  run_ = std::make_unique<Coupled<T>>(problem, groups, members_, forker, Continuation::expected);
  const auto& choices = run_->choices();
  relaxed_ = {choices.layout(), run_->options(0), choices.log_p(), choices.score(), choices.flat(free_), choices.flat(given_)};
  if (temperatures_.empty()) return;

  // Every relaxed path depends on the weights of its own row alone, so one pass gives all slopes.
  auto total = problem.tape.constant(1, 1);
  for (const auto& cost : run_->episode().costs()) total = add(total, sum(cost.loss));
  problem.tape.backward(total);
  for (int k = 1; k < members_; ++k) slopes_.push_back(run_->slopes(k));
}

template <class T>
AtLogits RelaxedRun<T>::control(std::size_t i, Credit credit) const {
  const std::size_t w = coupled_ ? 1 + i : 1 + 2 * i, given = coupled_ ? w : w + 1;
  return relaxed_.control(temperatures_[i], run_->losses(static_cast<int>(given), credit), slopes_[w - 1], slopes_[given - 1]);
}

template <class T>
Var<T> RelaxedRun<T>::surrogate(const AtLogits& g) {
  return add(run_->path(false), run_->choices().surrogate(g));
}

template class RelaxedRun<float>;
template class RelaxedRun<double>;

}  // namespace hardgrad
