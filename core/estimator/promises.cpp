#include "core/estimator/promises.hpp"

#include <algorithm>
#include <boost/math/quadrature/gauss.hpp>
#include <cmath>

#include "core/estimator/estimator.hpp"

namespace hardgrad {

Promises::Promises(std::initializer_list<Promise> promises) : promises_(std::make_shared<std::vector<Promise>>(promises)) {}
const Promise* Promises::begin() const { return promises_ ? promises_->data() : nullptr; }
const Promise* Promises::end() const { return promises_ ? promises_->data() + promises_->size() : nullptr; }

SmallChoice::Vector SmallChoice::p(double temperature) const {
  Vector p = std::exp((logits - logits.max()) / temperature);
  p /= p.sum();
  return p;
}

SmallChoice::Vector SmallChoice::q() const {
  if (behaviour.size() == 0) return p();
  Vector q = std::exp(behaviour - behaviour.max());
  q /= q.sum();
  return q;
}

SmallChoice::Vector SmallChoice::one_hot(std::size_t option) const {
  Vector z(0.0, logits.size());
  z[option] = 1;
  return z;
}

SmallChoice::Vector SmallChoice::mean(const std::function<Vector(std::size_t)>& g) const {
  Vector sum(0.0, logits.size());
  const auto p = this->p();
  for (std::size_t z = 0; z < p.size(); ++z) sum += p[z] * g(z);
  return sum;
}

SmallChoice::Vector through_softmax(const SmallChoice::Vector& w, const SmallChoice::Vector& x) {
  return w * (x - (w * x).sum());
}

double over_logistic(double location, double from, double to, double width, const std::function<double(double)>& h) {
  from = std::max(from, location - 45);
  to = std::min(to, location + 45);
  if (!(from < to)) return 0;
  const int panels = static_cast<int>(std::ceil((to - from) / std::clamp(width, 1e-3, 0.5)));
  double sum = 0;
  for (int i = 0; i < panels; ++i) {
    const double left = from + (to - from) * i / panels, right = from + (to - from) * (i + 1) / panels;
    sum += boost::math::quadrature::gauss<double, 15>::integrate(
        [&](double z) {
          const double x = 1 / (1 + std::exp(location - z));
          return h(z) * x * (1 - x);
        },
        left, right);
  }
  return sum;
}

std::string Promise::text() const {
  const auto named = [&]() -> std::string {
    switch (kind) {
      case Kind::mean: return "mean by its formula";
      case Kind::advantages: return "moments by its advantages";
      case Kind::unbiased: return "unbiased";
      case Kind::variance: return "variance as recorded";
      case Kind::same_moments: return "moments of " + other;
      case Kind::less_variance:
        return "variance not above that of " + other + (loss == Loss::sum ? " where the loss is a sum over columns" : "");
      case Kind::consistent: return "no bias as " + parameter + " grows";
      case Kind::limit: return "no bias as " + parameter + " falls to 0";
      case Kind::unshifted: return "a constant in the loss changes nothing";
      case Kind::noiseless:
        return std::string("no variance where the loss is ") + (loss == Loss::constant ? "constant" : "linear") +
               (learned ? " and the estimator is trained" : "");
      case Kind::best_constant: return "with many samples no " + parameter + " of " + other + " has less variance";
      case Kind::descends_square: return "its own parameters follow the derivative of E|g|^2";
    }
    return "";
  };
  return named() + (with.empty() ? "" : ", with " + with);
}

}  // namespace hardgrad
