#include "core/estimator/coupling/flipping.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/coupling/antithetic_bits.hpp"
#include "core/estimator/coupling/coupled.hpp"

namespace hardgrad {
namespace {

/// A choice of an example: column d of the n-th question of a site.
struct FlippedChoice {
  std::size_t site;
  int time, column;
};

/// Rows are ordered (example, group, member); the members are the sample, the flipped row, and the twin if there is one.
template <class T>
class FlipHandler final : public Handler<T> {
 public:
  FlipHandler(const Problem<T>& problem, int groups, std::size_t members)
      : problem_(problem),
        structure_(problem.model.structure()),
        groups_(groups),
        members_(members),
        asked_(structure_.sites.size()) {
    std::vector<FlippedChoice> all;  // all choices of the longest run
    for (std::size_t s = 0; s < structure_.sites.size(); ++s)
      for (int n = 0; n < structure_.sites[s].times; ++n)
        for (int d = 0; d < structure_.sites[s].columns; ++d) all.push_back({s, n, d});
    const std::vector<double> alike(all.size(), 1.0 / static_cast<double>(all.size()));
    for (const auto id : problem.batch.id)
      for (int g = 0; g < groups; ++g)
        flip_at_.push_back(all[problem.random.categorical(
            alike, {.example = id, .replica = static_cast<std::uint32_t>(g), .step = Draw::whole})]);
    flipped_.assign(flip_at_.size(), -1);
  }

  Choice<T> choose(Tape<T>&, const Question<T>& question) override {
    const auto rows = fan_out(question, question.site.rows->is_root() ? groups_ * static_cast<int>(members_) : 1);
    const std::size_t D = question.site.columns, width = members_ * D;
    const auto& options = question.categories().options();
    std::vector<int> option(rows->size() * D);
    draw_samples(question, *rows, option);
    for (std::size_t n = 0; n < flip_at_.size(); ++n) {
      const auto sample = option.begin() + static_cast<std::ptrdiff_t>(n * width), other = sample + D;
      if (flipped_[n] >= 0 && !structure_.independent())
        draw_for_itself(question, *rows, n * members_ + 1, other);
      else
        std::copy_n(sample, D, other);
      const auto& [site, time, column] = flip_at_[n];
      if (structure_.sites[site].name != question.site.name || time != asked_[site]) continue;
      if (options[rows->parent[n * members_] * D + column] == 1) continue;
      other[column] = 1 - sample[column];
      flipped_[n] = question.step;
    }
    for (std::size_t s = 0; s < asked_.size(); ++s) asked_[s] += structure_.sites[s].name == question.site.name;
    return {rows, ChosenOptions{std::move(option)}};
  }

  std::size_t samples() const { return flip_at_.size(); }  ///< B G
  /// True if this choice of the sample is the flipped one.
  bool flips(std::size_t sample, std::size_t step, std::size_t column) const {
    return flipped_[sample] == static_cast<int>(step) && flip_at_[sample].column == static_cast<int>(column);
  }

 private:
  /// Draws the options of the samples, and of their twins.
  void draw_samples(const Question<T>& question, const Rows& rows, std::vector<int>& option) {
    const std::size_t D = question.site.columns;
    std::vector<int> parent;
    for (std::size_t n = 0; n < flip_at_.size(); ++n) parent.push_back(rows.parent[n * members_]);
    const auto samples = Rows::after(question.site.rows, std::move(parent), question.step);
    const auto put = [&](const std::vector<int>& drawn, std::size_t member) {
      for (std::size_t n = 0; n < flip_at_.size(); ++n)
        std::copy_n(drawn.begin() + static_cast<std::ptrdiff_t>(n * D), D,
                    option.begin() + static_cast<std::ptrdiff_t>((n * members_ + member) * D));
    };
    if (members_ == 2) return put(draw_options(question, *samples, problem_.random, problem_.batch.id), 0);
    const auto pairs = draw_pairs(question, *samples, problem_.random, problem_.batch.id);
    put(pairs.first, 0);
    put(pairs.second, 2);
  }
  void draw_for_itself(const Question<T>& question, const Rows& rows, std::size_t row, std::vector<int>::iterator to) {
    const int D = question.site.columns;
    for (int d = 0; d < D; ++d) {
      auto where = Noise{problem_.random, problem_.batch.id, question.step}.at(rows, row, d);
      where.index = BranchPoint::continuing;
      to[d] = draw_option(question, rows.parent[row] * D + d, problem_.random, where);
    }
  }

  const Problem<T>& problem_;
  const Structure& structure_;
  int groups_;
  std::size_t members_;
  std::vector<int> asked_;              // [sites] questions of each site so far
  std::vector<FlippedChoice> flip_at_;  // [B G] the choice of each sample to flip
  std::vector<int> flipped_;            // [B G] the step of the flip; -1 if the run has not reached it
};

}  // namespace

template <class T>
Estimate<T> FlippingEstimator<T>::estimate(const Problem<T>& problem) const {
  const int groups = problem.one_copy ? 1 : groups_;
  const std::size_t members = antithetic_ ? 3 : 2;
  FlipHandler<T> handler(problem, groups, members);
  Sampled<T> run(problem, groups * static_cast<int>(members), handler, Costs::weighted);
  const auto f = run.losses();
  const auto choices = run.choices();
  const auto& layout = *choices.layout();
  const auto& p = choices.p();
  auto g = choices.zeros();
  for (std::size_t t = 0; t < layout.steps.size(); ++t) {
    const auto& option = run.episode().steps()[t].choice.option();
    const std::size_t D = layout.steps[t].columns;
    for (std::size_t n = 0; n < handler.samples(); ++n)
      for (std::size_t d = 0; d < D; ++d) {
        const std::size_t row = n * members, choice = layout.steps[t].choice + row * D + d, logit = layout.logit[choice];
        if (layout.options[choice] == 1) continue;
        g.value[logit + 1] = derivative({.p = {p.value[logit], p.value[logit + 1]},
                                         .option = option[row * D + d],
                                         .antithetic = antithetic_ ? option[(row + 2) * D + d] : 0,
                                         .flipped = handler.flips(n, t, d),
                                         .choices = problem.model.structure().choices(),
                                         .f = f[row],
                                         .f_flipped = f[row + 1],
                                         .f_antithetic = antithetic_ ? f[row + 2] : 0});
        g.value[logit] = -g.value[logit + 1];
      }
  }
  // Samples and twins follow the distribution, flipped rows do not: they are left out of the path term and of the loss.
  const std::size_t drawn = antithetic_ ? 2 : 1;
  const double share = static_cast<double>(members) / static_cast<double>(drawn * f.size());
  std::vector<double> weight(f.size());
  double loss = 0;
  for (std::size_t row = 0; row < f.size(); ++row)
    if (row % members != 1) loss += (weight[row] = share) * f[row];
  auto surrogate = add(choices.surrogate(static_cast<double>(members) * g), run.path(weight));
  return {.surrogate = surrogate, .episode = run.release(), .loss = loss};
}

template class FlippingEstimator<float>;
template class FlippingEstimator<double>;

}  // namespace hardgrad
