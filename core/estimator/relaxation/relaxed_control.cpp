#include "core/estimator/relaxation/relaxed_control.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"

namespace hardgrad {
namespace {

// J x / temperature with J = diag(w) - w w', the symmetric Jacobian of the softmax.
std::vector<double> jacobian_times(const std::vector<double>& w, double temperature, std::span<const double> x) {
  double mean = 0;
  for (std::size_t i = 0; i < w.size(); ++i) mean += w[i] * x[i];
  std::vector<double> y(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) y[i] = w[i] * (x[i] - mean) / temperature;
  return y;
}

}  // namespace

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
void add_scaled(std::vector<double>& to, double factor, std::span<const double> x) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * x[i];
}

std::vector<double> RelaxedChoice::score() const {
  std::vector<double> s(log_p.size());
  for (std::size_t i = 0; i < s.size(); ++i) s[i] = (static_cast<int>(i) == free.option) - std::exp(log_p[i]);
  return s;
}

std::vector<double> RelaxedChoice::through_free(double temperature, std::span<const double> slope) const {
  return jacobian_times(relaxed(free, temperature), temperature, slope);
}

// At log p it is share * h; log p = logits - logsumexp takes p times the sum off.
std::vector<double> RelaxedChoice::through_given(double temperature, std::span<const double> slope) const {
  auto h = jacobian_times(relaxed(given, temperature), temperature, slope);
  const auto share = followed(log_p, given);
  double sum = 0;
  for (std::size_t i = 0; i < h.size(); ++i) sum += h[i] *= share[i];
  for (std::size_t i = 0; i < h.size(); ++i) h[i] -= std::exp(log_p[i]) * sum;
  return h;
}

std::vector<double> RelaxedChoice::control(double temperature, double value, std::span<const double> slope,
                                           std::span<const double> slope_given) const {
  auto sum = through_free(temperature, slope);
  add_scaled(sum, -1, through_given(temperature, slope_given));
  add_scaled(sum, -value, score());
  return sum;
}

std::vector<double> RelaxedChoice::direction(double temperature, std::span<const double> g) const {
  const auto share = followed(log_p, free);
  double mean = 0;
  for (std::size_t i = 0; i < log_p.size(); ++i) mean += std::exp(log_p[i]) * g[i];
  std::vector<double> x(log_p.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = g[i] - share[i] * (g[i] - mean);
  return jacobian_times(relaxed(free, temperature), temperature, x);
}

template <class T>
RelaxedRun<T>::RelaxedRun(const Problem<T>& problem, int groups, bool coupled, std::vector<double> temperatures)
    : coupled_(coupled),
      temperatures_(std::move(temperatures)),
      members_(1 + static_cast<int>(temperatures_.size()) * (coupled ? 1 : 2)) {
  const auto forker = [&](Tape<T>& tape, const Question<T>& question, const std::vector<Forking>& forking) {
    const auto log_p = question.log_p.value();
    const std::size_t S = log_p.cols;
    auto& choices = choices_.emplace_back(forking.size());
    Fork<T> fork{std::vector<int>(forking.size() * members_)};
    std::vector<T> weights(fork.option.size() * S);
    for (std::size_t g = 0; g < forking.size(); ++g) {
      auto [row, where] = forking[g];
      auto& choice = choices[g];
      const int options = question.site.options[row];
      if (options > 1) {
        choice.log_p.assign(log_p.row(row), log_p.row(row) + options);
        choice.free = choice.given = perturb(choice.log_p, problem.random, where);
        where.index += options;
        if (!coupled_) choice.given = perturb_given(choice.log_p, choice.free.option, problem.random, where);
        fork.option[g * members_] = choice.free.option;
      }
      for (int k = 0; k < members_; ++k) {
        T* to = weights.data() + (g * members_ + k) * S;
        if (k == 0 || options == 1) {
          to[fork.option[g * members_]] = 1;
          continue;
        }
        const bool given = !coupled_ && k % 2 == 0;  // members: hard, then w and w~ of each temperature
        const auto w = relaxed(given ? choice.given : choice.free, temperatures_[coupled_ ? k - 1 : (k - 1) / 2]);
        std::copy(w.begin(), w.end(), to);
      }
    }
    width_.push_back(S);
    if (!temperatures_.empty()) fork.weights = tape.input({weights.data(), fork.option.size(), S});
    return fork;
  };
  run_ = std::make_unique<Coupled<T>>(problem, groups, members_, forker, Continuation::expected);
  if (temperatures_.empty()) return;

  // Every relaxed path depends on the weights of its own row alone, so one pass gives all slopes.
  auto total = problem.tape.constant(1, 1);
  for (const auto& cost : run_->episode().costs()) total = add(total, sum(cost.loss));
  problem.tape.backward(total);
  for (int t = 0; t < steps(); ++t) {
    const auto slope = problem.tape.gradient(run_->fork(t).weights);
    slopes_.emplace_back(slope.data, slope.data + slope.size());
  }
}

template <class T>
std::span<const double> RelaxedRun<T>::slope(int step, std::size_t group, int member) const {
  return std::span(slopes_[step]).subspan((group * members_ + member) * width_[step], choices_[step][group].log_p.size());
}

template <class T>
Var<T> RelaxedRun<T>::surrogate(Credit credit, const Rule& rule) {
  auto total = run_->path(false);
  std::vector<std::vector<double>> controls(temperatures_.size());
  for (int t = 0; t < steps(); ++t) {
    const auto f = run_->losses(t, credit);
    std::vector<double> gradient(groups() * width_[t]);
    for (std::size_t g = 0; g < groups(); ++g) {
      const auto& choice = choices_[t][g];
      if (choice.log_p.empty()) continue;
      for (std::size_t i = 0; i < temperatures_.size(); ++i) {
        const int w = coupled_ ? 1 + static_cast<int>(i) : 1 + 2 * static_cast<int>(i), given = coupled_ ? w : w + 1;
        controls[i] = choice.control(temperatures_[i], f[g * members_ + given], slope(t, g, w), slope(t, g, given));
      }
      const auto at = rule(t, g, f[g * members_], controls);
      std::copy(at.begin(), at.end(), gradient.begin() + static_cast<std::ptrdiff_t>(g * width_[t]));
    }
    total = add(total, run_->at_logits(t, gradient));
  }
  return total;
}

template class RelaxedRun<float>;
template class RelaxedRun<double>;

}  // namespace hardgrad
