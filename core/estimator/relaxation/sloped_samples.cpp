#include "core/estimator/relaxation/sloped_samples.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/relaxed.hpp"

namespace hardgrad {

template <class T>
SlopedSamples<T>::SlopedSamples(const Problem<T>& problem, int samples) : samples_(samples) {
  RelaxedChooser<T> chooser(samples, problem.random, problem.batch.id, [](const Relaxing<T>& asked) {
    auto option = asked.draw();
    auto hard = asked.tape.constant(asked.size(), asked.question.log_p.cols());
    for (std::size_t r = 0; r < option.size(); ++r) asked.tape.mutable_value(hard)(r, option[r]) = 1;
    return Relaxed<T>{std::move(option), asked.tape.input(hard.value())};
  });
  run_ = std::make_unique<Sampled<T>>(problem, samples, chooser);
  rows_ = run_->rows();
  auto total = problem.tape.constant(1, 1);
  for (const auto& cost : run_->episode().costs()) total = hardgrad::add(total, sum(cost.loss));
  problem.tape.backward(total);
  for (const auto& [question, choice] : run_->episode().steps()) {
    const auto slope = problem.tape.gradient(choice.weights);
    const auto log_p = question.log_p.value();
    slope_.emplace_back(slope.data, slope.data + slope.size());
    width_.push_back(log_p.cols);
    auto& p = p_.emplace_back(log_p.size());
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::exp(static_cast<double>(log_p.data[i]));
  }
}

template <class T>
int SlopedSamples<T>::options(int step, std::size_t row) const {
  return run_->episode().steps()[step].question.site.options[row_of(step, row)];
}
template <class T>
std::span<const double> SlopedSamples<T>::p(int step, std::size_t row) const {
  return std::span(p_[step]).subspan(row_of(step, row) * width_[step], options(step, row));
}
template <class T>
std::span<const double> SlopedSamples<T>::slope(int step, std::size_t row) const {
  return std::span(slope_[step]).subspan(row * width_[step], options(step, row));
}

template <class T>
std::vector<double> SlopedSamples<T>::others_slope(int step, std::size_t row) const {
  std::vector<double> mean(options(step, row));
  const std::size_t first = row / samples_ * samples_;
  for (std::size_t other = first; other < first + samples_; ++other) {
    if (other == row) continue;
    const auto d = slope(step, other);
    for (std::size_t i = 0; i < std::min(d.size(), mean.size()); ++i) mean[i] += d[i] / (samples_ - 1);
  }
  return mean;
}

template <class T>
AtLogits SlopedSamples<T>::at_logits() const {
  AtLogits at;
  for (const auto& p : p_) at.emplace_back(p.size());
  return at;
}

template <class T>
void SlopedSamples<T>::add(AtLogits& to, int step, std::size_t row, double factor, std::span<const double> value) const {
  double* into = to[step].data() + row_of(step, row) * width_[step];
  for (std::size_t i = 0; i < value.size(); ++i) into[i] += factor * value[i];
}

template <class T>
Var<T> SlopedSamples<T>::surrogate(const AtLogits& at) {
  auto total = run_->path();
  for (int t = 0; t < steps(); ++t) {
    auto weight = at[t];
    for (auto& w : weight) w /= static_cast<double>(rows_);
    total = hardgrad::add(total, weighted_sum(run_->episode().steps()[t].question.logits, std::span<const double>(weight)));
  }
  return total;
}

template <class T>
double SlopedSamples<T>::product(const AtLogits& a, const AtLogits& b) const {
  double total = 0;
  for (std::size_t t = 0; t < a.size(); ++t) total += std::inner_product(a[t].begin(), a[t].end(), b[t].begin(), 0.0);
  return total / (static_cast<double>(rows_) * samples_);
}

template <class T>
double SlopedSamples<T>::product_at(const AtLogits& g, int step, std::size_t row, int option) const {
  const double* at = g[step].data() + row_of(step, row) * width_[step];
  const auto s = score(option, p(step, row));
  return std::inner_product(s.begin(), s.end(), at, 0.0);
}

std::vector<double> score(int option, std::span<const double> p) {
  std::vector<double> s(p.size());
  for (std::size_t i = 0; i < s.size(); ++i) s[i] = (static_cast<int>(i) == option) - p[i];
  return s;
}

std::vector<double> through_softmax(std::span<const double> p, std::span<const double> x) {
  double mean = 0;
  for (std::size_t i = 0; i < p.size(); ++i) mean += p[i] * x[i];
  std::vector<double> y(p.size());
  for (std::size_t i = 0; i < p.size(); ++i) y[i] = p[i] * (x[i] - mean);
  return y;
}

template class SlopedSamples<float>;
template class SlopedSamples<double>;

}  // namespace hardgrad
