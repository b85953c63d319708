#include "experiments/measurement/reference_gradient.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/autodiff/tape.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/lengths.hpp"
#include "experiments/measurement/quadrature.hpp"
#include "experiments/support/parallel.hpp"

namespace hardgrad::measurement {

namespace {

/// By enumeration, or by a quadrature of `nodes` nodes a column.
template <class T>
ReferenceGradient reference_of(const Target& target, const Model<T>& model, const Batch& batch, int nodes, double leaf_cap,
                               const Stop& stop) {
  const int examples = batch.examples();
  const std::size_t size = model.parameters().size();
  ReferenceGradient truth{std::vector<double>(size), std::vector<std::vector<double>>(examples, std::vector<double>(size))};
  std::vector<double> value(examples);
  parallel_for(examples, [&](int b) {
    poll(stop);
    const auto example = batch.select({b});
    Tape<T> tape(polling(stop));
    KeyedRandomness none{Key()};  // enumeration draws nothing
    Problem<T> problem{tape, model, example, none};
    problem.nodes = nodes;
    const auto estimate = exact_objective<T>(target, problem, leaf_cap);
    differentiate(estimate.surrogate, model.parameters(), truth.of_example[b]);
    require_finite(std::span<const double>(truth.of_example[b]), model.parameters());
    require_finite(value[b] = estimate.loss, "the exact loss");
  });
  for (int b = 0; b < examples; ++b) {
    add_in_place(truth.gradient, xt::adapt(truth.of_example[b]) / examples);
    truth.value += value[b] / examples;
  }
  return truth;
}

}  // namespace

double ReferenceGradient::norm() const { return length_of(gradient); }

std::string ReferenceGradient::what() const {
  if (nodes == 0) return "enumerated";
  return fmt::format("Gauss-Hermite quadrature, {} nodes a column, good to {:.1g} of its norm", nodes,
                     std::max(error / norm(), 1e-15));
}

template <class T>
ReferenceGradient exact_reference(const Target& target, const Model<T>& model, const Batch& batch, double leaf_cap,
                                  const Stop& stop) {
  const auto& structure = model.structure();
  auto truth = reference_of(target, model, batch, 0, leaf_cap, stop);
  if (structure.numbers()) {
    truth.nodes = structure.nodes();
    const auto with = [&](int nodes) { return reference_of(target, model, batch, nodes, leaf_cap, stop); };
    const auto rated = [&](ReferenceGradient of, int nodes, const ReferenceGradient& rougher) {
      const auto rough = with(3 * nodes / 4);
      of.nodes = nodes;
      of.error = gauss_error(distance_between(rough.gradient, rougher.gradient), distance_between(of.gradient, rough.gradient));
      return of;
    };
    const int nodes = truth.nodes;
    truth = rated(std::move(truth), nodes, with(nodes / 2));
    constexpr int most = 64;  // only if columns are few: otherwise the rows are too many
    constexpr double enough = std::max(1e-10, 16.0 * std::numeric_limits<T>::epsilon());
    if (2 * nodes == most && truth.error > enough * truth.norm()) return rated(with(most), most, truth);
  }
  return truth;
}

template <class T>
const ReferenceGradient* ReferenceGradients<T>::of(const Target& target) {
  const auto& structure = model_.structure_with_policies();
  if (target.terms().drawn_from == DrawnFrom::posterior && !structure.posterior) {
    why_ = structure.lacks_posterior();
    return nullptr;
  }
  if (target.terms().to_reference != 0 && !structure.reference) {
    why_ = structure.lacks_reference;
    return nullptr;
  }
  if (target.entry().rewards && !structure.rewards) {
    why_ = structure.lacks_rewards;
    return nullptr;
  }
  if (target.entry().likelihood && *structure.no_likelihood) {
    why_ = structure.lacks_likelihood();
    return nullptr;
  }
  if (target.entry().dreams && !structure.answer_sampler) {
    why_ = lacks_dreams;
    return nullptr;
  }
  if (*structure.joins && batch_.examples() > 1) {
    why_ = fmt::format("{} joins the examples of a batch, but they are enumerated one by one: take a batch of one",
                       structure.joins);
    return nullptr;
  }
  const auto& name = target.text();
  if (auto it = known_.find(name); it != known_.end()) return it->second ? &*it->second : nullptr;
  auto& slot = known_[name];
  const auto of_example = enumeration_terms(target, model_, batch_);
  for (std::size_t b = 0; b < of_example.size(); ++b)
    if (const double terms = of_example[b]; terms > leaf_cap_) {
      why_ = fmt::format("example {} has {:.6g} {}, more than the cap of {:.6g}", b, terms, target.entry().counted, leaf_cap_);
      return nullptr;
    }
  slot = exact_reference(target, model_, batch_, leaf_cap_, stop_);
  return &*slot;
}

template ReferenceGradient exact_reference(const Target&, const Model<float>&, const Batch&, double, const Stop&);
template ReferenceGradient exact_reference(const Target&, const Model<double>&, const Batch&, double, const Stop&);
template class ReferenceGradients<float>;
template class ReferenceGradients<double>;

}  // namespace hardgrad::measurement
