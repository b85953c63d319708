// A Normal distribution for each column: z = mean + exp(log_scale) e, e standard normal.
#pragma once

#include "core/choice/distribution.hpp"

namespace hardgrad {

template <class T>
class Normal final : public Distribution<T> {
 public:
  /// mean [R, D], log_scale [R, D]: the logarithm of the standard deviation.
  Normal(Var<T> mean, Var<T> log_scale);
  const SiteKind& kind() const override { return SiteKind::normal; }
  std::vector<std::pair<std::string_view, Var<T>>> parameters() const override {
    return {{"mean", mean_}, {"log_scale", log_scale_}};
  }
  std::vector<double> parameters_at(std::size_t row, std::size_t column) const override {
    return {static_cast<double>(mean_.value()(row, column)), static_cast<double>(log_scale_.value()(row, column))};
  }
  Var<T> location() const { return mean_; }
  Var<T> log_scale() const { return log_scale_; }
  /// mean + exp(log_scale) e [R', D] for constant e [R' D]; a constant unless `differentiable`.
  Choice<T> at(Tape<T>& tape, const RowsPtr& rows, const std::vector<double>& e, bool differentiable) const;

  Choice<T> sample(Tape<T>& tape, const RowsPtr& rows, const Noise& noise) const override;
  Choice<T> reparameterised_sample(Tape<T>& tape, const RowsPtr& rows, const Noise& noise) const override;
  Choice<T> at_quantiles(Tape<T>& tape, const RowsPtr& rows, const std::vector<double>& u) const override;
  Choice<T> mode(Tape<T>& tape, const RowsPtr& rows) const override;
  Choice<T> mean(const RowsPtr& rows) const override;
  /// Gauss-Hermite quadrature with `nodes` points per column: R nodes^D rows.
  Choice<T> enumerate(Tape<T>& tape, const RowsPtr& asking, int step, const Visits& visits) const override;
  Var<T> log_probability(const Choice<T>& choice) const override;
  std::vector<double> squared_scores(const Choice<T>& choice) const override;
  Var<T> entropy() const override;
  Var<T> divergence(const Distribution<T>& other) const override;
  /// For the expected answer only: the divergence by column, which is the mean of log this - log other.
  Var<T> log_ratio(const Choice<T>& choice, const Distribution<T>& other) const override;

 private:
  Var<T> divergence_by_column(const Distribution<T>& other) const;
  std::vector<double> noise_of(const Rows& rows, const Noise& noise) const;
  Var<T> mean_, log_scale_;
};

template <class T>
std::shared_ptr<const Normal<T>> normal(Var<T> mean, Var<T> log_scale) {
  return std::make_shared<const Normal<T>>(mean, log_scale);
}

/// The distribution as a Normal; Bug if it is not a Normal.
template <class T>
const Normal<T>& as_normal(const Distribution<T>& distribution);

extern template class Normal<float>;
extern template class Normal<double>;

}  // namespace hardgrad
