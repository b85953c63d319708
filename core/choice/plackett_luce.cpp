// Subsets of draws without replacement, without their order (subsets.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/subsets.hpp"
#include "core/choice/gumbel.hpp"
#include "core/choice/subsets.hpp"
#include "core/choice/top_k.hpp"
#include "core/kernels/plackett_luce.hpp"

namespace hardgrad {
namespace {

template <class T>
class PlackettLuceSubsets final : public Subsets<T> {
 public:
  PlackettLuceSubsets(Var<T> logits, std::vector<int> options, SubsetSize subset_size, int columns)
      : Subsets<T>(logits, std::move(options), std::move(subset_size), columns) {
    if (const int most = kernels::PlackettLuce::most_picks; this->subset_size() > most)
      throw UsageError(
          fmt::format("plackett_luce sums over the orders of the picks: pick at most {} options, not {}, or take "
                      "conditional_poisson",
                      most, this->subset_size()));
    for (std::size_t c = 0; c < this->options_.size(); ++c)
      if (this->possible(c).empty())
        throw UsageError("a subset has no possible option: all of its logits are -inf; leave at least one finite");
  }

  std::vector<double> score(std::size_t choice, std::span<const int> picked) const override {
    kernels::PlackettLuce set;
    set.load(this->logits_.value().row(choice), this->options_[choice], picked);
    std::vector<double> result(this->options_[choice]);
    set.score([&](std::size_t i, double value) { result[i] = value; });
    return result;
  }
  Var<T> divergence(const Distribution<T>& other) const override {
    const auto* q = dynamic_cast<const PlackettLuceSubsets*>(&other);
    if (!q) throw Bug("a distribution of subsets is compared with a distribution of another kind");
    const auto& all = every();
    const auto log_q = q->log_p(q->logits_, q->options_, q->each(), all.of, all.picked);
    return group_sums(sums(subtract(all.log_p, log_q)), this->columns());
  }
  Var<T> log_ratio(const Choice<T>&, const Distribution<T>&) const override {
    throw UsageError(
        "the log probability of plackett_luce is not linear in weights over the options, so that relaxed choices "
        "have no divergence: take an estimator with hard choices, or conditional_poisson");
  }

 protected:
  Var<T> log_p(Var<T> x, std::span<const int> options, SubsetSizes, std::span<const int> from,
               std::span<const int> picked) const override {
    return plackett_luce_log_probability(x, options, from, picked);
  }
  Var<T> find_marginals() const override {
    const auto& all = every();
    Choice<T> sets{nullptr, ChosenOptions{all.picked, this->subset_size()}};
    return sums(sets.one_hot(*this->logits_.tape, this->logits_.cols()));
  }
  Var<T> entropies() const override { return affine(sums(every().log_p), T{-1}); }

  std::vector<int> draw(const std::vector<int>& from, Randomness& random,
                        const std::function<Draw(std::size_t)>& where) const override {
    const auto most = static_cast<std::size_t>(this->subset_size());
    std::vector<int> option(from.size() * most, -1);
    std::vector<double> log_p, z;
    for (std::size_t c = 0; c < from.size(); ++c) {
      const auto possible = this->possible(from[c]);
      const auto k = std::min(possible.size(), static_cast<std::size_t>(this->subset_size_of(from[c])));
      const auto to = std::span(option).subspan(c * most, k);
      if (k == possible.size()) {
        std::copy(possible.begin(), possible.end(), to.begin());
        continue;
      }
      log_p.clear();
      for (int i : possible) log_p.push_back(static_cast<double>(this->logits_.value()(from[c], i)));
      const double greatest = *std::max_element(log_p.begin(), log_p.end());
      double total = 0;
      for (double x : log_p) total += std::exp(x - greatest);
      for (double& x : log_p) x -= greatest + std::log(total);
      z.resize(log_p.size());
      const int options[] = {static_cast<int>(log_p.size())};
      int first[1];
      const Draw at[] = {where(c)};
      perturb({log_p.size(), options, log_p}, at, random, first, z);
      write_largest(std::span<const double>(z), to);
      for (int& i : to) i = possible[i];
    }
    return option;
  }

 private:
  /// Every subset of every choice, and its log probability [N, 1].
  struct Every {
    std::vector<int> of, picked;
    Var<T> log_p;
  };
  const Every& every() const {
    if (every_.log_p) return every_;
    for (std::size_t c = 0; c < this->options_.size(); ++c) {
      const auto sets = this->listed(c);
      every_.picked.insert(every_.picked.end(), sets.begin(), sets.end());
      every_.of.resize(every_.picked.size() / this->subset_size(), static_cast<int>(c));
    }
    every_.log_p = log_p(this->logits_, this->options_, this->each(), every_.of, every_.picked);
    return every_;
  }
  /// sum_S p(S) x(S) of each choice -> [R D, C], x [N, C] of every subset.
  Var<T> sums(Var<T> x) const {
    const auto& all = every();
    return segment_sums(scale_rows(x, exp(all.log_p)), std::span<const int>(all.of), this->options_.size());
  }

  mutable Every every_;
};

}  // namespace

template <class T>
std::shared_ptr<const Subsets<T>> plackett_luce(Var<T> logits, std::vector<int> options, SubsetSize subset_size, int columns) {
  return std::make_shared<const PlackettLuceSubsets<T>>(logits, std::move(options), std::move(subset_size), columns);
}

template std::shared_ptr<const Subsets<float>> plackett_luce(Var<float>, std::vector<int>, SubsetSize, int);
template std::shared_ptr<const Subsets<double>> plackett_luce(Var<double>, std::vector<int>, SubsetSize, int);

}  // namespace hardgrad
