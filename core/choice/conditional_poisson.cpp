// Subsets with probabilities proportional to the product of their weights (subsets.hpp).
#include <algorithm>
#include <array>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/autodiff/subsets.hpp"
#include "core/choice/categorical.hpp"
#include "core/choice/subsets.hpp"
#include "core/kernels/conditional_poisson.hpp"

namespace hardgrad {
namespace {

template <class T>
class ConditionalPoissonSubsets final : public Subsets<T> {
 public:
  ConditionalPoissonSubsets(Var<T> logits, std::vector<int> options, SubsetSize subset_size, int columns)
      : Subsets<T>(logits, std::move(options), std::move(subset_size), columns) {}

  std::vector<double> score(std::size_t choice, std::span<const int> picked) const override {  // 1_S - pi
    const T* pi = this->marginals().value().row(choice);
    std::vector<double> result(this->options_[choice]);
    for (int i : picked)
      if (i >= 0) result[i] = 1;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] -= static_cast<double>(pi[i]);
    return result;
  }
  Var<T> divergence(const Distribution<T>& other) const override {
    std::vector<int> all(this->options_.size());
    std::iota(all.begin(), all.end(), 0);
    return group_sums(log_ratio_under(this->marginals(), all, other), this->columns());
  }
  Var<T> log_ratio(const Choice<T>& choice, const Distribution<T>& other) const override {
    return reshape(log_ratio_under(choice.weights(), parent_choices_of(*choice.rows, this->columns()), other), this->columns());
  }

 protected:
  Var<T> log_p(Var<T> x, std::span<const int> options, SubsetSizes subset_size, std::span<const int> from,
               std::span<const int> picked) const override {
    return subset_log_probability(x, options, subset_size, from, picked);
  }
  Var<T> find_marginals() const override { return subset_marginals(this->logits_, this->options_, this->each()); }
  Var<T> entropies() const override { return subset_entropy(this->logits_, this->options_, this->each()); }

  std::vector<int> draw(const std::vector<int>& from, Randomness& random,
                        const std::function<Draw(std::size_t)>& at) const override {
    std::vector<int> option(from.size() * this->subset_size(), -1);
    kernels::ConditionalPoisson group;
    constexpr std::size_t lanes = kernels::ConditionalPoisson::lanes;
    std::size_t loaded = this->logits_.rows();  // the first choice of the group
    for (std::size_t c = 0; c < from.size(); ++c) {
      const std::size_t first = from[c] / lanes * lanes, lane = from[c] - first;
      if (first != loaded) group.load(this->logits_.value(), this->options_, loaded = first, this->each());
      auto where = at(c);
      double u = -1;  // below 0: to be drawn
      const int k = group.subset_size(lane);
      for (int i = 0, picked = 0; picked < k && i < this->options_[from[c]]; ++i) {
        const double p = group.pick_next(lane, i, picked);
        bool subset_size = p >= 1;
        if (p > 0 && p < 1 && random.options_first()) {
          subset_size = random.categorical(std::array{1 - p, p}, where) == 1;
          ++where.index;
        } else if (p > 0 && p < 1) {
          if (u < 0) u = random.uniform(where), ++where.index;
          subset_size = u < p;
          u = (u - p) / (1 - p);
        }
        if (!subset_size) continue;
        option[c * this->subset_size() + picked++] = i;
        u = -1;
      }
    }
    return option;
  }

 private:
  Var<T> log_normaliser() const {
    if (!log_normaliser_) log_normaliser_ = subset_normaliser(this->logits_, this->options_, this->each());
    return log_normaliser_;
  }
  /// E log p / p' = sum_i w_i (x_i - x'_i) - log Z + log Z', under weights w
  Var<T> log_ratio_under(Var<T> weights, const std::vector<int>& from, const Distribution<T>& other) const {
    const auto* p = dynamic_cast<const ConditionalPoissonSubsets*>(&other);
    if (!p) throw Bug("a distribution of subsets is compared with a distribution of another kind");
    const auto normaliser = subtract(p->log_normaliser(), log_normaliser());
    return add(hardgrad::log_ratio(weights, this->logits_, p->logits_, std::span<const int>(from)),
               gather_rows(normaliser, std::span<const int>(from)));
  }

  mutable Var<T> log_normaliser_;
};

}  // namespace

template <class T>
std::shared_ptr<const Subsets<T>> conditional_poisson(Var<T> logits, std::vector<int> options, SubsetSize subset_size,
                                                      int columns) {
  return std::make_shared<const ConditionalPoissonSubsets<T>>(logits, std::move(options), std::move(subset_size), columns);
}

template std::shared_ptr<const Subsets<float>> conditional_poisson(Var<float>, std::vector<int>, SubsetSize, int);
template std::shared_ptr<const Subsets<double>> conditional_poisson(Var<double>, std::vector<int>, SubsetSize, int);

}  // namespace hardgrad
