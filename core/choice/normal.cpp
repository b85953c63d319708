#include "core/choice/normal.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/support/error.hpp"

namespace hardgrad {
namespace {

const double log_root_two_pi = std::log(2 * std::numbers::pi) / 2;

template <class T>
Var<T> on(const Rows& rows, Var<T> x) {
  return gather_rows(x, std::span<const int>(rows.parent));
}

}  // namespace

template <class T>
Normal<T>::Normal(Var<T> mean, Var<T> log_scale)
    : Distribution<T>(mean.rows(), static_cast<int>(mean.cols())), mean_(mean), log_scale_(log_scale) {
  if (mean.rows() != log_scale.rows() || mean.cols() != log_scale.cols())
    throw Bug("a Normal's means and log scales must have the same shape");
}

template <class T>
Choice<T> Normal<T>::at(Tape<T>& tape, const RowsPtr& rows, const std::vector<double>& e, bool differentiable) const {
  const std::size_t D = this->columns();
  auto z = tape.constant(rows->size(), D);
  const auto to = tape.mutable_value(z);
  if (differentiable) {
    for (std::size_t i = 0; i < e.size(); ++i) to.data[i] = static_cast<T>(e[i]);
    return {rows, ChosenNumbers<T>{add(on(*rows, mean_), multiply(exp(on(*rows, log_scale_)), z))}};
  }
  const auto mean = mean_.value(), log_scale = log_scale_.value();
  for (std::size_t i = 0; i < e.size(); ++i) {
    const std::size_t r = rows->parent[i / D], d = i % D;
    to.data[i] = static_cast<T>(mean(r, d) + std::exp(static_cast<double>(log_scale(r, d))) * e[i]);
  }
  return {rows, ChosenNumbers<T>{z}};
}

template <class T>
std::vector<double> Normal<T>::noise_of(const Rows& rows, const Noise& noise) const {
  const std::size_t D = this->columns();
  std::vector<double> e(rows.size() * D);
  for (std::size_t i = 0; i < e.size(); ++i) e[i] = noise.random.normal(noise.at(rows, i / D, i % D));
  return e;
}

template <class T>
Choice<T> Normal<T>::sample(Tape<T>& tape, const RowsPtr& rows, const Noise& noise) const {
  return at(tape, rows, noise_of(*rows, noise), false);
}

template <class T>
Choice<T> Normal<T>::reparameterised_sample(Tape<T>& tape, const RowsPtr& rows, const Noise& noise) const {
  return at(tape, rows, noise_of(*rows, noise), true);
}

template <class T>
Choice<T> Normal<T>::at_quantiles(Tape<T>& tape, const RowsPtr& rows, const std::vector<double>& u) const {
  std::vector<double> e(u.size());
  for (std::size_t i = 0; i < e.size(); ++i) e[i] = standard_normal_quantile(u[i]);
  return at(tape, rows, e, false);
}

template <class T>
Choice<T> Normal<T>::mode(Tape<T>& tape, const RowsPtr& rows) const {
  return at(tape, rows, std::vector<double>(rows->size() * this->columns()), false);
}

template <class T>
Choice<T> Normal<T>::mean(const RowsPtr& rows) const {
  return {rows, ChosenNumbers<T>{.value = on(*rows, mean_), .expected = true}};
}

// A node's weight is w_i / density(z_i) x density: its value is the rule's w_i, its derivative that of the density.
template <class T>
Choice<T> Normal<T>::enumerate(Tape<T>& tape, const RowsPtr& asking, int step, const Visits& visits) const {
  const auto nodes = static_cast<std::size_t>(visits.nodes);
  const auto& rule = gauss_rule(Standard::normal, visits.nodes);
  const std::size_t D = this->columns();
  const double rows = std::pow(nodes, visits.side_by_side ? 1 : D) * static_cast<double>(asking->size());
  if (rows > visits.cap)
    throw NotExact(fmt::format("choice {} has more than {:.6g} rows to integrate over: take fewer steps, columns or examples",
                               step + 1, visits.cap));
  std::size_t each = visits.side_by_side ? nodes : 1;
  for (std::size_t d = 0; d < D && !visits.side_by_side; ++d) each *= nodes;
  const std::size_t total = asking->size() * each;
  std::vector<int> parent(total);
  std::vector<double> e(total * D), log_volume(total * D);
  for (std::size_t r = 0; r < total; ++r) {
    parent[r] = static_cast<int>(r / each);
    std::size_t rest = r % each;
    for (std::size_t d = D; d-- > 0; rest = visits.side_by_side ? rest : rest / nodes) {
      const std::size_t i = rest % nodes;
      e[r * D + d] = rule.points[i];
      log_volume[r * D + d] = std::log(rule.weights[i]) + e[r * D + d] * e[r * D + d] / 2 + log_root_two_pi +
                              static_cast<double>(log_scale_.value()(parent[r], d));
    }
  }
  auto choice = at(tape, Rows::after(asking, std::move(parent), step), e, false);
  const auto of_nodes = tape.constant(total, D);
  for (std::size_t i = 0; i < total * D; ++i) tape.mutable_value(of_nodes).data[i] = static_cast<T>(log_volume[i]);
  choice.answer = ChosenNumbers<T>{choice.value(), !visits.side_by_side && D > 1 ? row_sums(of_nodes) : of_nodes};
  choice.side_by_side = visits.side_by_side;
  return choice;
}

template <class T>
Var<T> Normal<T>::log_probability(const Choice<T>& choice) const {
  const auto log_scale = on(*choice.rows, log_scale_);
  const auto e = multiply(subtract(choice.value(), on(*choice.rows, mean_)), exp(affine(log_scale, T{-1})));
  return subtract(affine(square(e), T{-0.5}, static_cast<T>(-log_root_two_pi)), log_scale);
}

// (e / s)^2 + (e^2 - 1)^2, e = (z - mean) / s
template <class T>
std::vector<double> Normal<T>::squared_scores(const Choice<T>& choice) const {
  const std::size_t D = this->columns();
  const auto mean = mean_.value(), log_scale = log_scale_.value(), z = choice.value().value();
  std::vector<double> result(choice.rows->size() * D);
  for (std::size_t c = 0; c < result.size(); ++c) {
    const std::size_t r = c / D, d = c % D, from = choice.rows->parent[r];
    const double s = std::exp(static_cast<double>(log_scale(from, d))), e = (static_cast<double>(z(r, d)) - mean(from, d)) / s;
    result[c] = e * e / (s * s) + (e * e - 1) * (e * e - 1);
  }
  return result;
}

template <class T>
Var<T> Normal<T>::entropy() const {
  return row_sums(affine(log_scale_, T{1}, static_cast<T>(log_root_two_pi + 0.5)));
}

// log(s_p / s_q) + (s_q^2 + (m_q - m_p)^2) / (2 s_p^2) - 1/2 [R, D]
template <class T>
Var<T> Normal<T>::divergence_by_column(const Distribution<T>& other) const {
  const auto& p = as_normal(other);
  const auto wider = subtract(p.log_scale_, log_scale_);
  const auto apart = square(multiply(subtract(mean_, p.mean_), exp(affine(p.log_scale_, T{-1}))));
  const auto narrower = exp(affine(wider, T{-2}));
  return add(wider, affine(add(narrower, apart), T{0.5}, T{-0.5}));
}

template <class T>
Var<T> Normal<T>::divergence(const Distribution<T>& other) const {
  return row_sums(divergence_by_column(other));
}

template <class T>
Var<T> Normal<T>::log_ratio(const Choice<T>& choice, const Distribution<T>& other) const {
  if (choice.has_probability()) throw Bug("a drawn number has no weights");
  return on(*choice.rows, divergence_by_column(other));
}

template <class T>
const Normal<T>& as_normal(const Distribution<T>& distribution) {
  const auto* numbers = dynamic_cast<const Normal<T>*>(&distribution);
  if (!numbers) throw Bug("a Normal distribution is needed, but the site has another kind");
  return *numbers;
}

template class Normal<float>;
template class Normal<double>;
template const Normal<float>& as_normal(const Distribution<float>&);
template const Normal<double>& as_normal(const Distribution<double>&);

}  // namespace hardgrad
