#include "core/estimator/relaxation/relaxed_control.hpp"

#include <algorithm>
#include <type_traits>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/gumbel.hpp"
#include "core/support/array.hpp"

namespace hardgrad {
namespace {

/// Choices are processed in blocks of about this many, whose numbers stay in the first-level cache.
constexpr std::size_t block = 256;

/// Calls f(from, to) for blocks of samples (or groups), each with `columns` choices.
template <class F>
void for_blocks(std::size_t samples, std::size_t columns, F f) {
  const std::size_t most = std::max<std::size_t>(1, block / columns);
  for (std::size_t from = 0; from < samples; from += most) f(from, std::min(samples, from + most));
}

}  // namespace

AtLogits RelaxedChoices::weights(double temperature) const {
  AtLogits w{layout, std::vector<double>(given.value.size())};
  for (std::size_t t = 0; t < layout->steps.size(); ++t) {
    const auto& step = layout->steps[t];
    const std::size_t n = layout->samples * step.columns * step.options;
    relaxed<double>(step.options, layout->options_of(t), std::span(given.value).subspan(step.logit, n), temperature,
                    std::span(w.value).subspan(step.logit, n));
  }
  return w;
}

auto RelaxedChoices::slope_of(const AtLogits& weights, const AtLogits& slope) -> Slope {
  return [&](std::size_t t, std::size_t from, std::size_t to, double* w, double* x) {
    const auto& step = weights.of->steps[t];
    const std::size_t of_sample = step.columns * step.options, first = step.logit + from * of_sample;
    std::copy_n(&weights.value[first], (to - from) * of_sample, w);
    std::copy_n(&slope.value[first], (to - from) * of_sample, x);
  };
}

// Through the noise held, dw/dz = (diag(w) - w w') / temperature and dz/dlogits = 1. Given the choice, the gradient at log p is
// h = slope * share with the share of `followed`. As log p = logits - logsumexp, the gradient at the logits is h - p sum(h).
AtLogits RelaxedChoices::gradient(double temperature, const PerChoice& signal, double eta, const Slope& at_free,
                                  const Slope& at_given) const {
  AtLogits result{layout, {}};
  result.value.reserve(layout->logits());
  std::vector<double> w, x, free, h, share, of_b;
  for (std::size_t t = 0; t < layout->steps.size(); ++t) {
    const std::size_t D = layout->steps[t].columns, S = layout->steps[t].options;
    for_blocks(layout->samples, D, [&](std::size_t from, std::size_t to) {
      const std::size_t first = layout->steps[t].choice + from * D, logit = layout->steps[t].logit + from * D * S;
      const std::size_t choices = (to - from) * D, n = choices * S;
      const auto options = std::span(layout->options).subspan(first, choices), b = std::span(option).subspan(first, choices);
      const auto law = std::span(p.value).subspan(logit, n);
      for (auto* numbers : {&w, &x, &free, &h, &of_b}) numbers->resize(n);
      share.assign(n, 0);
      at_free(t, from, to, w.data(), x.data());
      through_softmax(S, options, w, x, free);
      if (at_given) {
        at_given(t, from, to, w.data(), x.data());
        through_softmax(S, options, w, x, h);
      } else {
        h = free;
      }
      followed(S, options, law, b, std::span(given.value).subspan(logit, n), share);
      for (std::size_t i = 0; i < n; ++i) h[i] *= share[i];
      for (std::size_t c = 0; S > 2 && c < choices; ++c) {  // of two options the entries are opposite, so their sum is 0
        double sum = 0;
        for (std::size_t i = c * S; i < (c + 1) * S; ++i) sum += h[i];
        for (std::size_t i = c * S; i < (c + 1) * S; ++i) h[i] -= law[i] * sum;
      }
      scores(S, options, law, b, of_b);
      result.value.resize(logit + n);
      const auto put = [&, out = &result.value[logit], by = &signal.value[first], scale = eta / temperature](auto S) {
        for (std::size_t c = 0; c < choices; ++c)
          for (std::size_t i = c * S; i < (c + 1) * S; ++i) out[i] = by[c] * of_b[i] + scale * (free[i] - h[i]);
      };
      S == 2 ? put(std::integral_constant<std::size_t, 2>{}) : put(S);
    });
  }
  return result;
}

AtLogits RelaxedChoices::direction(double temperature, const AtLogits& g) const {
  auto x = g;
  for (std::size_t t = 0; t < layout->steps.size(); ++t) {
    const auto& step = layout->steps[t];
    const auto options = layout->options_of(t);
    const std::size_t n = options.size() * step.options;
    std::vector<double> share(n);
    followed(step.options, options, std::span(p.value).subspan(step.logit, n),
             std::span(option).subspan(step.choice, options.size()), std::span(given.value).subspan(step.logit, n), share);
    for (std::size_t c = 0; c < options.size(); ++c) {
      if (options[c] == 1) continue;
      const std::size_t first = c * step.options, last = first + static_cast<std::size_t>(options[c]);
      double mean = 0;
      for (std::size_t i = first; i < last; ++i) mean += p.value[step.logit + i] * g.value[step.logit + i];
      for (std::size_t i = first; i < last; ++i) x.value[step.logit + i] -= share[i] * (g.value[step.logit + i] - mean);
    }
  }
  return 1 / temperature * through_softmax(weights(temperature), x);
}

template <class T>
void RelaxedRun<T>::relax(const Question<T>& question, const std::vector<BranchPoint>& branch_points, Branches<T>& branches,
                          Tape<T>& tape, Randomness& random) {
  const auto& all_options = question.categories().options();
  const auto log_p = question.categories().log_p().value();
  const std::size_t S = log_p.cols, D = question.site.columns;
  auto& all_given = given_.emplace_back();
  all_given.reserve(branch_points.size() * D * S);
  // For each group, the columns of member after member: the hard ones, then w and w~ for each temperature.
  MatrixView<T> weights;
  if (!temperatures_.empty()) {
    branches.weights = tape.input(branches.option.size(), S);
    weights = tape.mutable_value(branches.weights);
  }
  std::vector<double> l, free, given;
  std::vector<T> w;
  std::vector<int> options, option;
  std::vector<Draw> where;
  for_blocks(branch_points.size(), D, [&](std::size_t from, std::size_t to) {
    const std::size_t choices = (to - from) * D;
    for (auto* numbers : {&free, &given}) numbers->assign(choices * S, 0);
    l.resize(choices * S);
    w.resize(choices * S);
    options.resize(choices);
    option.assign(choices, 0);
    for (std::size_t g = from, c = 0; g < to; ++g, c += D) {
      std::copy_n(log_p.row(branch_points[g].row * D), D * S, &l[c * S]);
      std::copy_n(&all_options[branch_points[g].row * D], D, &options[c]);
    }
    const std::size_t together = all_are(options, S) ? D : 1;  // choices that are drawn from one place on
    where.clear();
    for (std::size_t c = 0; c < choices; c += together) {
      where.push_back(branch_points[from + c / D].where);
      where.back().column = static_cast<std::uint32_t>(c % D);
    }
    const bool all_choose = *std::min_element(options.begin(), options.end()) > 1;
    perturb({S, options, l}, where, random, option, free);
    for (std::size_t i = 0; i < where.size(); ++i) where[i].index += options[i * together];
    if (coupled_)
      given = free;
    else
      perturb_given({S, options, l}, option, where, random, given);
    all_given.insert(all_given.end(), given.begin(), given.end());
    for (std::size_t g = from; g < to; ++g) std::copy_n(&option[(g - from) * D], D, &branches.option[g * members_ * D]);

    for (int k = 0; k < members_ && weights.data; ++k) {
      const bool from_given = !coupled_ && k % 2 == 0;
      if (k > 0) relaxed<T>(S, options, from_given ? given : free, temperatures_[coupled_ ? k - 1 : (k - 1) / 2], w);
      for (std::size_t g = from, c = 0; g < to; ++g, c += D) {
        T* const of_member = weights.row((g * members_ + k) * D);
        if (k > 0)
          std::copy_n(&w[c * S], D * S, of_member);
        else
          std::fill_n(of_member, D * S, T{0});
        for (std::size_t d = 0; d < D && (k == 0 || !all_choose); ++d)
          if (k == 0 || options[c + d] == 1) of_member[d * S + option[c + d]] = 1;
      }
    }
  });
}

template <class T>
RelaxedRun<T>::RelaxedRun(const Problem<T>& problem, int groups, bool coupled, std::vector<double> temperatures)
    : coupled_(coupled),
      temperatures_(std::move(temperatures)),
      members_(1 + static_cast<int>(temperatures_.size()) * (coupled ? 1 : 2)) {
  const auto brancher = [&](Tape<T>& tape, const Question<T>& question, const std::vector<BranchPoint>& branch_points) {
    Branches<T> branches{std::vector<int>(branch_points.size() * members_ * question.site.columns)};
    relax(question, branch_points, branches, tape, problem.random);
    return branches;
  };
  run_ = std::make_unique<Coupled<T>>(problem, groups, members_, brancher, Continuation::expected);
  const auto& choices = run_->choices();
  relaxed_.emplace(RelaxedChoices{
      .layout = choices.layout(), .option = run_->options(0), .p = choices.p(), .given = choices.flat(std::move(given_))});
  if (temperatures_.empty()) return;

  // Each relaxed path depends only on the weights of its own row, so one backward pass gives all slopes. Hard paths have none.
  auto total = problem.tape.constant(1, 1);
  for (const auto& cost : run_->episode().costs()) {
    std::vector<double> relaxed(cost.rows->size(), 1.0);
    for (int hard : run_->first_members(*cost.rows)) relaxed[hard] = 0;
    total = add(total, weighted_sum(cost.loss, std::span<const double>(relaxed)));
  }
  problem.tape.backward_to_inputs(total);
  // Later backward passes do not reach these inputs, so that the slopes stay in their memory.
  for (int t = 0; t < run_->steps(); ++t) slopes_.push_back(problem.tape.gradient(run_->weights(t)));
}

template <class T>
RelaxedChoices::Slope RelaxedRun<T>::slope_of(int member) const {
  return [this, member](std::size_t t, std::size_t from, std::size_t to, double* w, double* x) {
    const auto& step = relaxed_->layout->steps[t];
    const std::size_t n = step.columns * step.options;
    const T *weights = run_->weights(static_cast<int>(t)).value().data, *slope = slopes_[t].data;
    for (std::size_t g = from; g < to; ++g, w += n, x += n) {
      const std::size_t first = (g * members_ + member) * n;
      std::copy_n(weights + first, n, w);
      std::copy_n(slope + first, n, x);
    }
  };
}

template <class T>
PerChoice RelaxedRun<T>::relaxed_losses(std::size_t i, Credit credit) const {
  return run_->losses(given_member(i), credit);
}

template <class T>
AtLogits RelaxedRun<T>::gradient(std::size_t i, const PerChoice& signal, double eta) const {
  return relaxed_->gradient(temperatures_[i], signal, eta, slope_of(free_member(i)),
                            coupled_ ? RelaxedChoices::Slope{} : slope_of(given_member(i)));
}

template <class T>
Var<T> RelaxedRun<T>::surrogate(const AtLogits& g) {
  return add(run_->path(false), run_->choices().surrogate(g));
}

template class RelaxedRun<float>;
template class RelaxedRun<double>;

}  // namespace hardgrad
