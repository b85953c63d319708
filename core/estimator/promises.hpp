// The promises of an estimator beside its claim to be unbiased: declared in its entry, checked by `hardgrad test`. Without them
// a biased estimator, a control variate or a learned part could have any factor or sign and still pass.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <valarray>
#include <vector>

#include "core/registry/fields.hpp"

namespace hardgrad {

/// One choice of S options with a known loss f, and its derivative at any weights over the options. Formulas of an estimator's
/// mean are written for this problem.
struct SmallChoice {
  using Vector = std::valarray<double>;
  Vector logits;                               ///< [S]
  std::function<double(const Vector&)> loss;   ///< f at weights [S]; the loss of an option is f at its one-hot vector
  std::function<Vector(const Vector&)> slope;  ///< [S] df/dw at weights [S]
  Vector behaviour = {};                       ///< [S] logits of the policy that draws, for an estimator that corrects for it

  /// softmax(logits / temperature) [S]
  Vector p(double temperature = 1) const;
  /// [S] the behaviour policy, or p if there is none.
  Vector q() const;
  Vector one_hot(std::size_t option) const;
  /// sum_z p(z) g(z) over the options z; g returns [S].
  Vector mean(const std::function<Vector(std::size_t)>& g) const;
};

/// (diag(w) - w w') x: from a gradient x in softmax weights w to the gradient at their logits.
SmallChoice::Vector through_softmax(const SmallChoice::Vector& w, const SmallChoice::Vector& x);
/// Integral from `from` to `to` of h(z) under the density of location + logistic noise; h is smooth on the scale `width`.
/// Infinite ends are cut off where the density is below e^-45.
double over_logistic(double location, double from, double to, double width, const std::function<double(double)>& h);

/// A property that can be tested on small networks. `with`: settings it holds under ("temperature=0.7,samples=2"), which
/// override the tested settings; empty: it holds under all settings.
struct Promise {
  enum class Kind {
    mean,           ///< the estimate's mean at the logits of one choice is `formula`
    advantages,     ///< it is the score times `advantages`, also after it has learned from other losses
    unbiased,       ///< its mean is the target's gradient under these settings
    variance,       ///< its variance (summed over parameters) on two choices of two options that share a loss is `value`
    same_moments,   ///< mean and variance equal those of the estimator `other`
    less_variance,  ///< variance not above that of `other`; if `loss` is `sum`, only for losses that are sums over columns
    consistent,  ///< its bias, and that of the reported loss, vanishes as the integer setting `parameter` grows, in powers of
                 ///< 1 / parameter; if it needs dreams, only the gradient's bias, judged by draws
    limit,       ///< its bias vanishes as the real setting `parameter` falls to 0, in powers of it
    unshifted,   ///< a constant added to every loss changes no estimate
    noiseless,   ///< no variance if the loss is of the kind `loss` (and the posterior, if any, equals the prior)
    best_constant,   ///< with many samples, no value of the setting `parameter` of `other` (a constant baseline) has less
                     ///< variance
    descends_square  ///< the gradient of Estimate::own_loss equals in the mean that of E|g|^2, g the estimate at the logits
  };
  enum class Loss { constant, linear, sum, any };
  /// [S] the mean of the gradient at the logits; empty if the formula covers only other numbers of options.
  using Mean = OfSettings<SmallChoice::Vector, const SmallChoice&>;

  /// [B][K] the factors of the scores of B examples' K samples: g = 1/(B K) sum_bk A_bk grad log p. They follow from the
  /// current losses and from the losses learned from before (none for an estimator without averages). The estimator's own
  /// networks give 0.
  using Losses = std::vector<std::vector<double>>;
  using Advantages = OfSettings<Losses, const Losses&, const std::vector<Losses>&>;

  Kind kind;
  std::string with = "";
  Mean formula = {};
  Advantages advantages = {};
  std::string other = "", parameter = "";
  double value = 0;
  Loss loss = Loss::any;
  bool learned = false;  ///< `noiseless` only once its own parameters are trained, or its averages if it has none

  /// One line: "no variance where the loss is linear, with alpha=-1".
  std::string text() const;
};

namespace promise {
inline Promise mean(Promise::Mean formula, std::string with = "") {
  return {.kind = Promise::Kind::mean, .with = std::move(with), .formula = formula};
}
inline Promise advantages(Promise::Advantages formula, std::string with = "") {
  return {.kind = Promise::Kind::advantages, .with = std::move(with), .advantages = formula};
}
inline Promise unbiased(std::string with) { return {.kind = Promise::Kind::unbiased, .with = std::move(with)}; }
inline Promise variance(double value, std::string with = "") {
  return {.kind = Promise::Kind::variance, .with = std::move(with), .value = value};
}
inline Promise same_moments(std::string as, std::string with) {
  return {.kind = Promise::Kind::same_moments, .with = std::move(with), .other = std::move(as)};
}
inline Promise less_variance(std::string than, std::string with, Promise::Loss loss = Promise::Loss::any) {
  return {.kind = Promise::Kind::less_variance, .with = std::move(with), .other = std::move(than), .loss = loss};
}
inline Promise consistent(std::string parameter, std::string with = "") {
  return {.kind = Promise::Kind::consistent, .with = std::move(with), .parameter = std::move(parameter)};
}
inline Promise limit(std::string parameter, std::string with = "") {
  return {.kind = Promise::Kind::limit, .with = std::move(with), .parameter = std::move(parameter)};
}
inline Promise unshifted(std::string with = "") { return {.kind = Promise::Kind::unshifted, .with = std::move(with)}; }
inline Promise noiseless(Promise::Loss loss, std::string with = "") {
  return {.kind = Promise::Kind::noiseless, .with = std::move(with), .loss = loss};
}
inline Promise noiseless_once_learned(std::string with = "") {
  return {.kind = Promise::Kind::noiseless, .with = std::move(with), .loss = Promise::Loss::constant, .learned = true};
}
inline Promise best_constant(std::string other, std::string parameter, std::string with = "") {
  return {.kind = Promise::Kind::best_constant,
          .with = std::move(with),
          .other = std::move(other),
          .parameter = std::move(parameter)};
}
inline Promise descends_square(std::string with = "") {
  return {.kind = Promise::Kind::descends_square, .with = std::move(with)};
}
}  // namespace promise

/// [S] mean of g(z_1..z_K) over independent z_k of the behaviour policy; S^K terms.
inline SmallChoice::Vector mean_over_tuples(const SmallChoice& at, int samples,
                                            const std::function<SmallChoice::Vector(const std::vector<std::size_t>&)>& g) {
  const auto q = at.q();
  const std::size_t S = q.size();
  SmallChoice::Vector sum(0.0, S);
  std::vector<std::size_t> z(samples);
  for (std::size_t code = 0, all = static_cast<std::size_t>(std::lround(std::pow(S, samples))); code < all; ++code) {
    double weight = 1;
    for (std::size_t k = 0, rest = code; k < z.size(); ++k, rest /= S) weight *= q[z[k] = rest % S];
    sum += weight * g(z);
  }
  return sum;
}

}  // namespace hardgrad
