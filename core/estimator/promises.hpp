// What an estimator promises beside its claim to be unbiased: declared in its entry, and held to by `hardgrad test`. So biased
// estimators, control variates and learned parts, of which no mean need be the exact gradient, have something to be wrong
// about.
#pragma once

#include <functional>
#include <string>
#include <valarray>
#include <vector>

namespace hardgrad {

class Settings;

/// One choice of S options whose loss f is known with its derivative at any weights over them: as large a problem as an
/// estimator's mean is written down for.
struct SmallChoice {
  using Vector = std::valarray<double>;
  Vector logits;                               ///< [S]
  std::function<double(const Vector&)> loss;   ///< f at weights [S]; of an option, at its one-hot vector
  std::function<Vector(const Vector&)> slope;  ///< [S] df/dw there

  /// softmax(logits / temperature) [S]
  Vector p(double temperature = 1) const;
  Vector one_hot(std::size_t option) const;
  /// sum_z p(z) g(z) over the options z; g gives [S].
  Vector mean(const std::function<Vector(std::size_t)>& g) const;
};

/// (diag(w) - w w') x, the gradient at the logits of softmax weights w from that in the weights.
SmallChoice::Vector through_softmax(const SmallChoice::Vector& w, const SmallChoice::Vector& x);
/// Integral of h(z), smooth on the scale `width`, over `from` to `to` under the density of location + logistic noise. Infinite
/// ends are cut off where the density is below e^-45.
double over_logistic(double location, double from, double to, double width, const std::function<double(double)>& h);

/// Something that can be tried on small networks. `with`: settings it holds under ("temperature=0.7,samples=2"), put over
/// those that are tested; none: whatever they are.
struct Promise {
  enum class Kind {
    mean,           ///< the estimate's mean at the logits of one choice is what `mean` says
    advantages,     ///< it is the score times what `advantages` says, also after it learned from other losses
    unbiased,       ///< its mean is its target's gradient under these settings
    variance,       ///< its variance (all parameters', summed) on two choices of two options that share a loss is `value`
    same_moments,   ///< mean and variance are those of the estimator `other`
    less_variance,  ///< the variance is not above that of `other`; where `loss` is a sum over the columns, only there
    consistent,  ///< its bias, and that of the loss it reports, vanishes as the integer setting `parameter` grows, in powers of
                 ///< 1 / parameter; where dreams are needed, the gradient's, as far as draws show
    limit,       ///< its bias vanishes as the real setting `parameter` falls to 0, in powers of it
    unshifted,   ///< a constant added to every loss changes no estimate
    noiseless,   ///< it has no variance where the loss is `loss` (and the posterior, if it takes one, the prior)
    best_constant,   ///< with many samples, no value of the setting `parameter` of `other` (a constant baseline) has less
                     ///< variance
    descends_square  ///< the gradient of Estimate::own_loss has the mean of that of E|g|^2, g the estimate at the logits
  };
  enum class Loss { constant, linear, sum, any };
  /// [S] the mean of the gradient at the logits; empty where it is written for other numbers of options only.
  using Mean = SmallChoice::Vector (*)(const Settings&, const SmallChoice&);

  /// [B][K] what the scores of B examples' K samples are multiplied by, from their losses and from those (none, of what has no
  /// averages) that were learned from before: g = 1/(B K) sum_bk A_bk grad log p, where its own networks give 0.
  using Losses = std::vector<std::vector<double>>;
  using Advantages = Losses (*)(const Settings&, const Losses&, const std::vector<Losses>& before);

  Kind kind;
  std::string with = "";
  Mean formula = nullptr;
  Advantages advantages = nullptr;
  std::string other = "", parameter = "";
  double value = 0;
  Loss loss = Loss::any;
  bool learned = false;  ///< `noiseless` once its own parameters are trained; if it has none, its averages

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

}  // namespace hardgrad
