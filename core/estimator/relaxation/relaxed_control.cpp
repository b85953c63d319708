#include "core/estimator/relaxation/relaxed_control.hpp"

#include <algorithm>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/gumbel.hpp"

namespace hardgrad {
namespace {

/// Calls each(choice, first logit, options) for the choices with several options.
template <class F>
void for_choices(const ChoiceLayout& layout, F each) {
  for (std::size_t c = 0; c < layout.choices(); ++c)
    if (layout.options[c] > 1) each(c, layout.logit[c], static_cast<std::size_t>(layout.options[c]));
}

/// The values at a step's logits.
template <class X>
std::span<X> at_step(const ChoiceLayout& layout, std::size_t t, std::span<X> x) {
  const auto& step = layout.steps[t];
  return x.subspan(step.logit, layout.samples * step.columns * step.options);
}

}  // namespace

AtLogits RelaxedChoices::weights(const AtLogits& z, double temperature) const {
  AtLogits w{layout, std::vector<double>(z.value.size())};
  for (std::size_t t = 0; t < layout->steps.size(); ++t)
    relaxed(layout->steps[t].options, layout->options_of(t), at_step(*layout, t, std::span(z.value)), temperature,
            at_step(*layout, t, std::span(w.value)));
  return w;
}

AtLogits RelaxedChoices::followed_by(const AtLogits& z) const {
  AtLogits share{layout, std::vector<double>(z.value.size())};
  for (std::size_t t = 0; t < layout->steps.size(); ++t) {
    const auto options = layout->options_of(t);
    followed({layout->steps[t].options, options, at_step(*layout, t, std::span(log_p.value))},
             std::span(option).subspan(layout->steps[t].choice, options.size()), at_step(*layout, t, std::span(z.value)),
             at_step(*layout, t, std::span(share.value)));
  }
  return share;
}

// dw/dz = (diag(w) - w w') / temperature, and dz/dlogits = 1 with the noise held.
AtLogits RelaxedChoices::through_free(double temperature, Slope at) const {
  return 1 / temperature * through_softmax(at.weights, at.slope);
}

// The gradient at log p is h = slope * share. As log p = logits - logsumexp, the gradient at the logits is h - p sum(h).
AtLogits RelaxedChoices::through_given(double temperature, Slope at) const {
  return given_the_choice(through_free(temperature, at));
}

AtLogits RelaxedChoices::given_the_choice(AtLogits with_noise_held) const {
  auto h = times(std::move(with_noise_held), followed_by(given));
  for_choices(*layout, [&](std::size_t, std::size_t first, std::size_t n) {
    if (n == 2) return;  // the two entries are opposite, so their sum is 0
    double sum = 0;
    for (std::size_t i = first; i < first + n; ++i) sum += h.value[i];
    for (std::size_t i = first; i < first + n; ++i) h.value[i] -= p.value[i] * sum;
  });
  return h;
}

AtLogits RelaxedChoices::control(double temperature, const PerChoice& value, Slope at_free, Slope at_given) const {
  auto result = through_free(temperature, at_free);
  result -= through_given(temperature, at_given);
  result -= value * score;
  return result;
}

AtLogits RelaxedChoices::control(double temperature, const PerChoice& value, Slope at) const {
  auto result = through_free(temperature, at);
  result -= given_the_choice(result);
  result -= value * score;
  return result;
}

AtLogits RelaxedChoices::direction(double temperature, const AtLogits& g) const {
  const auto share = followed_by(free);
  auto x = g;
  for_choices(*layout, [&](std::size_t, std::size_t first, std::size_t n) {
    double mean = 0;
    for (std::size_t i = first; i < first + n; ++i) mean += p.value[i] * g.value[i];
    for (std::size_t i = first; i < first + n; ++i) x.value[i] -= share.value[i] * (g.value[i] - mean);
  });
  return through_free(temperature, {weights(free, temperature), x});
}

template <class T>
void RelaxedRun<T>::relax(const Question<T>& question, const std::vector<Forking>& forking, Fork<T>& fork, Tape<T>& tape,
                          Randomness& random) {
  const auto& all_options = question.categories().options();
  const auto log_p = question.categories().log_p().value();
  const std::size_t S = log_p.cols, D = question.site.columns, choices = forking.size() * D;
  std::vector<double> l(choices * S);
  std::vector<int> options(choices), option(choices);
  std::vector<Draw> where(choices);
  for (std::size_t g = 0, c = 0; g < forking.size(); ++g)
    for (std::size_t d = 0; d < D; ++d, ++c) {
      const std::size_t asked = forking[g].row * D + d;
      options[c] = all_options[asked];
      where[c] = forking[g].where;
      where[c].column = static_cast<std::uint32_t>(d);
    }
  for (std::size_t g = 0; g < forking.size(); ++g) std::copy_n(log_p.row(forking[g].row * D), D * S, &l[g * D * S]);
  auto& free = free_.emplace_back(choices * S);
  auto& given = given_.emplace_back(choices * S);
  perturb({S, options, l}, where, random, option, free);
  for (std::size_t c = 0; c < choices; ++c) where[c].index += options[c];
  if (coupled_)
    given = free;
  else
    perturb_given({S, options, l}, option, where, random, given);

  // For each group, the columns of member after member: the hard ones, then w and w~ for each temperature.
  for (std::size_t g = 0; g < forking.size(); ++g) std::copy_n(&option[g * D], D, &fork.option[g * members_ * D]);
  if (temperatures_.empty()) return;
  std::vector<T> weights(fork.option.size() * S);
  for (int k = 0; k < members_; ++k) {
    const bool from_given = !coupled_ && k % 2 == 0;
    if (k > 0) {
      auto& w = made_[k - 1].emplace_back(choices * S);
      relaxed(S, options, from_given ? given : free, temperatures_[coupled_ ? k - 1 : (k - 1) / 2], w);
    }
    for (std::size_t g = 0, c = 0; g < forking.size(); ++g, c += D) {
      T* to = &weights[(g * members_ + k) * D * S];
      if (k > 0) std::copy_n(&made_[k - 1].back()[c * S], D * S, to);
      for (std::size_t d = 0; d < D; ++d)
        if (k == 0 || options[c + d] == 1) to[d * S + option[c + d]] = 1;
    }
  }
  fork.weights = tape.input({weights.data(), fork.option.size(), S});
}

template <class T>
RelaxedRun<T>::RelaxedRun(const Problem<T>& problem, int groups, bool coupled, std::vector<double> temperatures)
    : coupled_(coupled),
      temperatures_(std::move(temperatures)),
      members_(1 + static_cast<int>(temperatures_.size()) * (coupled ? 1 : 2)),
      made_(members_ - 1) {
  const auto forker = [&](Tape<T>& tape, const Question<T>& question, const std::vector<Forking>& forking) {
    Fork<T> fork{std::vector<int>(forking.size() * members_ * question.site.columns)};
    relax(question, forking, fork, tape, problem.random);
    return fork;
  };
  run_ = std::make_unique<Coupled<T>>(problem, groups, members_, forker, Continuation::expected);
  const auto& choices = run_->choices();
  relaxed_.emplace(RelaxedChoices{.layout = choices.layout(),
                                  .option = run_->options(0),
                                  .log_p = choices.log_p(),
                                  .p = choices.p(),
                                  .score = choices.score(),
                                  .free = choices.flat(std::move(free_)),
                                  .given = choices.flat(std::move(given_))});
  if (temperatures_.empty()) return;

  // Each relaxed path depends only on the weights of its own row, so one backward pass gives all slopes. Hard paths have none.
  auto total = problem.tape.constant(1, 1);
  for (const auto& cost : run_->episode().costs()) {
    std::vector<double> relaxed(cost.rows->size(), 1.0);
    for (int hard : run_->first_members(*cost.rows)) relaxed[hard] = 0;
    total = add(total, weighted_sum(cost.loss, std::span<const double>(relaxed)));
  }
  problem.tape.backward_to_inputs(total);
  for (int k = 1; k < members_; ++k) {
    weights_.push_back(choices.flat(std::move(made_[k - 1])));
    slopes_.push_back(run_->slopes(k));
  }
}

template <class T>
AtLogits RelaxedRun<T>::control(std::size_t i, Credit credit) const {
  const auto loss = [&](std::size_t member) { return run_->losses(static_cast<int>(member) + 1, credit); };
  const auto slope = [&](std::size_t member) { return RelaxedChoices::Slope{weights_[member], slopes_[member]}; };
  if (coupled_) return relaxed_->control(temperatures_[i], loss(i), slope(i));
  const std::size_t free = 2 * i, given = free + 1;
  return relaxed_->control(temperatures_[i], loss(given), slope(free), slope(given));
}

template <class T>
Var<T> RelaxedRun<T>::surrogate(const AtLogits& g) {
  return add(run_->path(false), run_->choices().surrogate(g));
}

template class RelaxedRun<float>;
template class RelaxedRun<double>;

}  // namespace hardgrad
