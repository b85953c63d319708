#include "core/estimator/coupling/split_coupling.hpp"

#include <algorithm>
#include <numeric>

#include "core/estimator/coupling/antithetic_bits.hpp"

namespace hardgrad {
namespace {

/// Options from..to-1 of the order, with their probabilities.
struct SplitNode {
  std::span<const double> p;
  std::span<const int> order;
  std::size_t from, to;

  double mass() const {
    double sum = 0;
    for (auto i = from; i < to; ++i) sum += p[order[i]];
    return sum;
  }
  bool has(int option) const { return std::find(order.begin() + from, order.begin() + to, option) != order.begin() + to; }
  int draw(Randomness& random, Draw where) const {
    if (to - from == 1) return order[from];
    std::vector<double> share;
    for (auto i = from; i < to; ++i) share.push_back(p[order[i]]);
    for (const double all = mass(); double& s : share) s /= all;
    return order[from + random.categorical(share, where)];
  }
  /// The two parts, and their probabilities.
  struct Halves;
  Halves halves(std::size_t middle) const;
};
struct SplitNode::Halves {
  SplitNode first, second;
  double of_first, of_second;
};
SplitNode::Halves SplitNode::halves(std::size_t middle) const {
  const SplitNode first{p, order, from, middle}, second{p, order, middle, to};
  const double a = first.mass(), b = second.mass();
  return {first, second, a / (a + b), b / (a + b)};
}

}  // namespace

template <class T>
std::vector<int> SplitCoupling<T>::order(std::span<const double> p) const {
  std::vector<int> as_given(p.size());
  std::iota(as_given.begin(), as_given.end(), 0);
  return as_given;
}

template <class T>
void SplitCoupling<T>::draw(Coupling& coupling, Randomness& random, Draw where) const {
  const auto options = order(coupling.p);
  SplitNode part{coupling.p, options, 0, options.size()};
  while (part.to - part.from > 1) {
    const auto [first, second, of_first, of_second] = part.halves(split(part.from, part.to));
    const auto side = antithetic_bits(of_first, of_second, random, where);
    ++where.index;
    if (side[0] == side[1]) {
      part = side[0] ? second : first;
      continue;
    }
    for (int k = 0; k < 2; ++k, ++where.index) coupling.option[k] = (side[k] ? second : first).draw(random, where);
    return;
  }
  std::fill(coupling.option.begin(), coupling.option.end(), options[part.from]);
}

template <class T>
void SplitCoupling<T>::gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const {
  const int z[] = {coupling.option[0], coupling.option[1]};
  if (z[0] == z[1]) return;
  const auto options = order(coupling.p);
  SplitNode part{coupling.p, options, 0, options.size()};
  while (true) {
    const auto [first, second, of_first, of_second] = part.halves(split(part.from, part.to));
    const bool side[] = {second.has(z[0]), second.has(z[1])};
    if (side[0] == side[1]) {
      part = side[0] ? second : first;
      continue;
    }
    for (int k = 0; k < 2; ++k) {
      const double sign = (k == 0 ? f[0] - f[1] : f[1] - f[0]) / 2, factor = std::min(of_first, of_second);
      const auto& own = side[k] ? second : first;
      const double mass = own.mass();
      logits[z[k]] += sign;
      for (auto i = own.from; i < own.to; ++i) logits[options[i]] -= sign * factor * coupling.p[options[i]] / mass;
    }
    return;
  }
}

template class SplitCoupling<float>;
template class SplitCoupling<double>;

}  // namespace hardgrad
