#include "core/choice/handlers.hpp"

#include "core/random/column_draws.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

template <class T>
RowsPtr fan_out(const Question<T>& question, int copies) {
  std::vector<int> parent(question.site.rows->size() * copies);
  for (std::size_t r = 0; r < parent.size(); ++r) parent[r] = static_cast<int>(r) / copies;
  return Rows::after(question.site.rows, std::move(parent), question.step);
}

template <class T>
int draw_option(const Question<T>& question, int choice, Randomness& random, Draw where) {
  const auto& categories = question.categories();
  const auto options = static_cast<std::size_t>(categories.options()[choice]);
  if (options == 1) return 0;
  const T* log_p = categories.log_p().value().row(choice);
  std::vector<double> p(options);
  probabilities(std::span(log_p, options), std::span(p));
  return random.categorical(p, where);
}

template <class T>
std::vector<int> draw_options(const Question<T>& question, const Rows& rows, Randomness& random,
                              const std::vector<std::uint32_t>& id, const std::vector<bool>* skip) {
  return question.categories().draw(rows, {random, id, question.step}, skip);
}

namespace {

/// Aims the draws of a behaviour policy at the law of the policy that is trained.
template <class T>
void aim_at_prior(const Question<T>& question, const Rows& rows, const Noise& noise) {
  const auto& site = question.site;
  if (!noise.random.options_first() || !site.behaviour || question.distribution != site.behaviour) return;
  if (const auto kind = site.behaviour->kind(); !kind.options || kind.several) return;
  const auto& prior = question.prior_categories();
  const auto log_p = prior.log_p().value();
  const std::size_t D = question.site.columns;
  std::vector<double> p;
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t d = 0; d < D; ++d) {
      const auto choice = rows.parent[r] * D + d;
      p.resize(prior.options()[choice]);
      probabilities(std::span(log_p.row(choice), p.size()), std::span(p));
      noise.random.aim(p, noise.at(rows, r, d));
    }
}

}  // namespace

template <class T>
Choice<T> SampleHandler<T>::choose(Tape<T>& tape, const Question<T>& question) {
  const auto rows = fan_out(question, question.site.rows->is_root() ? samples_ : 1);
  aim_at_prior(question, *rows, {random_, id_, question.step});
  return question.distribution->sample(tape, rows, {random_, id_, question.step});
}

template <class T>
void EnumerateHandler<T>::visit(const Question<T>& question, int choice, std::vector<int>& to) const {
  constexpr double masked = -1e5;  // no loss makes up for such a log probability; it is 0, as outside a window
  const T* log_p = question.categories().log_p().value().row(choice);
  for (int i = 0; i < question.categories().options()[choice]; ++i)
    if (!(log_p[i] < masked)) to.push_back(i);
}

template <class T>
Choice<T> EnumerateHandler<T>::choose(Tape<T>& tape, const Question<T>& question) {
  const auto& site = question.site;
  const auto* declared = structure_ ? structure_->site(site.name) : nullptr;
  return question.distribution->enumerate(
      tape, site.rows, question.step,
      {.side_by_side = site.columns > 1 && declared && declared->scope == DependenceScope::own_column,
       .options = [&](int choice, std::vector<int>& to) { visit(question, choice, to); },
       .cap = cap_,
       .nodes = question.nodes});
}

template <class T>
Choice<T> ForcedHandler<T>::choose(Tape<T>&, const Question<T>& question) {
  const auto asking = question.categories().options().size();
  const auto step = static_cast<std::size_t>(question.step);
  if (step >= option_.size() || option_[step].size() % asking != 0)
    throw Bug("forced choices do not fit the model's questions");
  return {fan_out(question, static_cast<int>(option_[step].size() / asking)), ChosenOptions{option_[step]}};
}

template <class T>
Choice<T> RepeatHandler<T>::choose(Tape<T>& tape, const Question<T>& question) {
  const auto step = static_cast<std::size_t>(question.step);
  if (step >= answered_.steps().size()) throw Bug("a run asks more questions than the run it repeats");
  const auto& answer = answered_.steps()[step].choice;
  if (answer.rows->origin->size() != question.site.rows->size()) throw Bug("a run has other rows than the run it repeats");
  auto rows = Rows::after(question.site.rows, answer.rows->parent, question.step);
  if (as_they_are_) {
    auto same = answer;
    same.rows = std::move(rows);
    return same;
  }
  if (answer.numbers()) return {std::move(rows), ChosenNumbers<T>{tape.detach(answer.value())}};
  return {std::move(rows), ChosenOptions{answer.picked(), answer.subset_size()}};
}

template <class T>
Choice<T> GreedyHandler<T>::choose(Tape<T>& tape, const Question<T>& question) {
  return question.distribution->mode(tape, fan_out(question, 1));
}

template <class T>
Choice<T> ExpectedHandler<T>::choose(Tape<T>&, const Question<T>& question) {
  return question.distribution->mean(fan_out(question, 1));
}

#define HARDGRAD_INSTANTIATE(T)                                                                                           \
  template RowsPtr fan_out(const Question<T>&, int);                                                                      \
  template int draw_option(const Question<T>&, int, Randomness&, Draw);                                                   \
  template std::vector<int> draw_options(const Question<T>&, const Rows&, Randomness&, const std::vector<std::uint32_t>&, \
                                         const std::vector<bool>*);                                                       \
  template class SampleHandler<T>;                                                                                        \
  template class EnumerateHandler<T>;                                                                                     \
  template class ForcedHandler<T>;                                                                                        \
  template class RepeatHandler<T>;                                                                                        \
  template class GreedyHandler<T>;                                                                                        \
  template class ExpectedHandler<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
