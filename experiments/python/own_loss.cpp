#include "experiments/python/own_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/rearrange.hpp"
#include "core/choice/subsets.hpp"
#include "core/support/error.hpp"
#include "experiments/python/policies.hpp"

namespace hardgrad::python {

template <class T>
GivenLogits<T>::GivenLogits(const T* numbers, std::size_t examples, std::size_t columns, std::size_t options, int subset_size,
                            int rank)
    : examples(examples),
      columns(columns),
      options(options),
      subset_size(subset_size),
      value(numbers, numbers + examples * columns * options) {
  const auto place = [&](std::size_t i) { return this->place(i, rank); };
  for (std::size_t cell = 0; cell < examples * columns; ++cell) {
    T* first = &value[cell * options];
    auto n = options;
    for (; n > 0 && first[n - 1] == -INFINITY; --n) first[n - 1] = 0;
    for (std::size_t s = 0; s < n; ++s)
      if (!std::isfinite(first[s]))
        throw UsageError(
            fmt::format("logits: entry {} is {}: logits are finite, {}", place(cell * options + s), first[s],
                        first[s] == -INFINITY ? "and missing options (-inf) are the last" : "or -inf for missing options"));
    if (n == 0) throw UsageError(fmt::format("logits: all options of entry {} are -inf", place(cell * options)));
    if (static_cast<int>(n) < subset_size)
      throw UsageError(
          fmt::format("logits: the choice at entry {} has {} options that are not -inf, fewer than the {} of its subset",
                      place(cell * options), n, subset_size));
    count.push_back(static_cast<int>(n));
  }
}

template <class T>
GivenLogits<T> GivenLogits<T>::of_examples(std::size_t first, std::size_t count) const {
  const auto some = [&]<class X>(const std::vector<X>& x, std::size_t of_example) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first * of_example);
    return x.empty() ? x : std::vector<X>(begin, begin + static_cast<std::ptrdiff_t>(count * of_example));
  };
  GivenLogits part;
  part.examples = count;
  part.columns = columns;
  part.options = options;
  part.subset_size = subset_size;
  part.value = some(value, columns * options);
  part.count = some(this->count, columns);
  part.behaviour = some(behaviour, columns * options);
  part.reference = some(reference, columns * options);
  return part;
}

template <class T>
std::string GivenLogits<T>::place(std::size_t entry, int rank) const {
  const auto e = entry / (columns * options), d = entry / options % columns, s = entry % options;
  return rank == 1 ? fmt::format("[{}]", s) : rank == 2 ? fmt::format("[{}, {}]", d, s) : fmt::format("[{}, {}, {}]", e, d, s);
}

template <class T>
DistributionPtr<T> distribution(Var<T> logits, std::vector<int> count, int columns, int subset_size) {
  if (subset_size > 0) return subsets(logits, std::move(count), subset_size, columns);
  return categorical(logits, std::move(count), columns);
}

template <class T>
std::vector<T> Answered<T>::ratios() const {
  std::vector<T> ratios;
  if (!behaviour) return ratios;
  const auto p = policy->log_probability(choice).value(), q = behaviour->log_probability(choice).value();
  for (std::size_t r = 0; r < p.rows; ++r) {
    double log = 0;
    for (std::size_t d = 0; d < p.cols; ++d) log += static_cast<double>(p(r, d)) - static_cast<double>(q(r, d));
    ratios.push_back(static_cast<T>(std::exp(log)));
  }
  return ratios;
}

template <class T>
OwnLoss<T>::OwnLoss(GivenLogits<T> given, std::vector<T> state, Loss loss, std::vector<Answered<T>>* answered)
    : given_(std::move(given)), state_(std::move(state)), loss_(std::move(loss)), answered_(answered) {
  if (state_.empty()) state_.assign(given_.examples, T{1});
  structure_ = {.sites = {{.name = "choice",
                           .options = static_cast<int>(given_.options),
                           .subset_size = std::max(1, given_.subset_size),
                           .state_width = static_cast<int>(state_.size() / given_.examples),
                           .scope = DependenceScope::own_costs,
                           .kind = given_.subset_size > 0 ? SiteKind::subsets : SiteKind::categorical,
                           .columns = static_cast<int>(given_.columns)}},
                .behaviour = !given_.behaviour.empty(),
                .reference = !given_.reference.empty(),
                .rewards = true};  // where they are needed, the losses are checked
  auto& parameter = this->parameters_.add("logits", {given_.examples * given_.columns, given_.options});
  parameter.value.storage() = std::move(given_.value);
  logits_ = &parameter;
}

template <class T>
Batch OwnLoss<T>::batch(std::vector<std::uint32_t> ids) const {
  Batch batch;
  Array<int> example = zeros<int>({given_.examples});
  std::iota(example.begin(), example.end(), 0);
  batch.id = std::move(ids);
  if (batch.id.empty()) batch.id.assign(example.begin(), example.end());
  batch.integers["example"] = std::move(example);
  return batch;
}

template <class T>
typename Model<T>::SiteExtent OwnLoss<T>::site_extent(const Batch& batch, std::size_t, int example) const {
  const auto first = given_.count.begin() + static_cast<std::ptrdiff_t>(batch.ints("example")(example) * given_.columns);
  return {{first, first + static_cast<std::ptrdiff_t>(given_.columns)}, 1};
}

template <class T>
void OwnLoss<T>::run(const Batch& batch, Episode<T>& episode) const {
  auto& tape = episode.tape();
  const auto& of = batch.ints("example").storage();
  const std::size_t D = given_.columns, width = state_.size() / given_.examples;
  std::vector<int> cells(of.size() * D), count(cells.size());
  for (std::size_t c = 0; c < cells.size(); ++c) {
    cells[c] = of[c / D] * static_cast<int>(D) + static_cast<int>(c % D);
    count[c] = given_.count[cells[c]];
  }
  auto state = tape.constant(of.size(), width);
  for (std::size_t b = 0; b < of.size(); ++b) std::copy_n(&state_[of[b] * width], width, tape.mutable_value(state).row(b));
  auto logits = tape.parameter(*logits_);
  const bool some = of.size() != given_.examples || !std::is_sorted(of.begin(), of.end());  // else every example occurs once
  if (some) logits = gather_rows(logits, std::span<const int>(cells));
  const auto law = [&](Var<T> logits) { return distribution(logits, count, static_cast<int>(D), given_.subset_size); };
  const auto policy = [&](const std::vector<T>& value) -> DistributionPtr<T> {
    if (value.empty()) return {};
    const auto all = tape.constant(MatrixView<const T>{value.data(), given_.examples * D, given_.options});
    return law(some ? gather_rows(all, std::span<const int>(cells)) : all);
  };

  Site<T> site{.name = "choice",
               .rows = episode.root(),
               .prior = law(logits),
               .state = state,
               .behaviour = policy(given_.behaviour),
               .reference = policy(given_.reference)};
  const auto prior = site.prior, behaviour = site.behaviour;
  const auto choice = episode.choose(std::move(site));
  std::vector<int> example(choice.rows->size());
  for (std::size_t r = 0; r < example.size(); ++r) example[r] = of[choice.rows->example[r]];
  const auto loss = loss_(tape, choice, example);
  if (takes_rewards_) require_rewards(loss.value());
  if (answered_) {
    tape.watch(loss);
    answered_->push_back({choice, std::move(example), loss, prior});
    if (episode.terms().drawn_from == DrawnFrom::behaviour) answered_->back().behaviour = behaviour;
  }
  episode.cost(choice.rows, loss);
}

template DistributionPtr<float> distribution(Var<float>, std::vector<int>, int, int);
template DistributionPtr<double> distribution(Var<double>, std::vector<int>, int, int);
template struct GivenLogits<float>;
template struct GivenLogits<double>;
template struct Answered<float>;
template struct Answered<double>;
template class OwnLoss<float>;
template class OwnLoss<double>;

}  // namespace hardgrad::python
