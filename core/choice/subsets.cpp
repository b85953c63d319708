#include "core/choice/subsets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/autodiff/subsets.hpp"
#include "core/choice/categorical.hpp"
#include "core/choice/enumerated_sets.hpp"
#include "core/choice/structure.hpp"
#include "core/kernels/conditional_poisson.hpp"
#include "core/support/error.hpp"

namespace hardgrad {
namespace {

constexpr double most_listed = 1e6;  // subsets of one choice

template <class T>
const Subsets<T>& same_kind(const Distribution<T>& other) {
  const auto* subsets = dynamic_cast<const Subsets<T>*>(&other);
  if (!subsets) throw Bug("a distribution of subsets is compared with a distribution of another kind");
  return *subsets;
}

}  // namespace

template <class T>
Subsets<T>::Subsets(Var<T> logits, std::vector<int> options, int picks, int columns)
    : Distribution<T>(options.size() / columns, columns), logits_(logits), options_(std::move(options)), picks_(picks) {
  if (options_.size() % columns != 0 || logits.rows() != options_.size())
    throw Bug("a site's logits and options must have one row per column of each asking row");
  if (picks < 1) throw Bug("a subset must have at least one option");
}

template <class T>
std::vector<int> Subsets<T>::possible(std::size_t choice) const {
  std::vector<int> result;
  const T* x = logits_.value().row(choice);
  for (int i = 0; i < options_[choice]; ++i)
    if (!(x[i] == -std::numeric_limits<T>::infinity())) result.push_back(i);
  return result;
}

template <class T>
bool Subsets<T>::chooses(std::size_t row) const {
  const std::size_t D = this->columns();
  for (std::size_t d = 0; d < D; ++d)
    if (possible(row * D + d).size() > static_cast<std::size_t>(picks_)) return true;
  return false;
}

template <class T>
double Subsets<T>::answers(std::size_t choice) const {
  return subsets_of(static_cast<int>(possible(choice).size()), picks_);
}

template <class T>
std::vector<double> Subsets<T>::log_p_of_answers(std::size_t choice) const {
  const double count = answers(choice);
  if (count > most_listed) throw NotExact(fmt::format("a choice has {:.6g} subsets, too many to visit one by one", count));
  const auto listed = possible(choice);
  std::vector<int> option(static_cast<std::size_t>(count) * picks_);
  for (std::size_t s = 0; s < option.size() / picks_; ++s)
    write_subset(listed, s, std::span(option).subspan(s * picks_, picks_));
  const int only[] = {static_cast<int>(choice)}, options[] = {options_[choice]};
  const std::vector<int> parent(static_cast<std::size_t>(count));
  const auto log_p = subset_log_probability(gather_rows(logits_.tape->detach(logits_), std::span<const int>(only)), options,
                                            picks_, std::span<const int>(parent), std::span<const int>(option));
  return {log_p.value().data, log_p.value().data + log_p.rows()};
}

template <class T>
std::vector<double> Subsets<T>::law(std::size_t row, std::size_t column) const {
  const std::size_t choice = row * this->columns() + column;
  const T* first = marginals().value().row(choice);
  return {first, first + options_[choice]};
}

template <class T>
void Subsets<T>::write_subset(std::span<const int> possible, std::size_t index, std::span<int> to) const {
  std::fill(to.begin(), to.end(), -1);
  const int n = static_cast<int>(possible.size()), k = std::min(picks_, n);
  auto left = static_cast<double>(index);
  for (int j = 0, i = 0; j < k; ++j, ++i) {
    for (double with; left >= (with = subsets_of(n - i - 1, k - j - 1)); ++i) left -= with;
    to[j] = possible[i];
  }
}

template <class T>
Choice<T> Subsets<T>::nth_answer(const RowsPtr& rows, const std::vector<int>& index) const {
  const auto from = parent_choices_of(*rows, this->columns());
  std::vector<int> option(from.size() * picks_);
  for (std::size_t c = 0; c < from.size(); ++c)
    write_subset(possible(from[c]), index[c], std::span(option).subspan(c * picks_, picks_));
  return {rows, ChosenOptions{std::move(option), picks_}};
}

template <class T>
Var<T> Subsets<T>::marginals() const {
  if (!marginals_) marginals_ = subset_marginals(logits_, std::span<const int>(options_), picks_);
  return marginals_;
}

template <class T>
Var<T> Subsets<T>::log_normaliser() const {
  if (!log_normaliser_) log_normaliser_ = subset_normaliser(logits_, std::span<const int>(options_), picks_);
  return log_normaliser_;
}

template <class T>
Choice<T> Subsets<T>::sample(Tape<T>&, const RowsPtr& rows, const Noise& noise) const {
  const std::size_t D = this->columns();
  const auto from = parent_choices_of(*rows, this->columns());
  if (noise.random.replays()) {  // of all ways to draw it, the one with the fewest outcomes
    std::vector<int> index(from.size());
    for (std::size_t c = 0; c < from.size(); ++c) {
      if (answers(from[c]) == 1) continue;
      auto p = log_p_of_answers(from[c]);
      for (double& v : p) v = std::exp(v);
      index[c] = noise.random.categorical(p, noise.at(*rows, c / D, c % D));
    }
    return nth_answer(rows, index);
  }
  std::vector<int> option(from.size() * picks_, -1);
  kernels::ConditionalPoisson group;
  constexpr std::size_t lanes = kernels::ConditionalPoisson::lanes;
  std::size_t loaded = logits_.rows();  // the first choice of the group
  for (std::size_t c = 0; c < from.size(); ++c) {
    const std::size_t first = from[c] / lanes * lanes, lane = from[c] - first;
    if (first != loaded) group.load(logits_.value(), std::span<const int>(options_), loaded = first, picks_);
    auto where = noise.at(*rows, c / D, c % D);
    double u = -1;  // below 0: to be drawn
    const int k = group.picks(lane);
    for (int i = 0, picked = 0; picked < k && i < options_[from[c]]; ++i) {
      const double p = group.pick_next(lane, i, picked);
      if (p > 0 && p < 1 && u < 0) u = noise.random.uniform(where), ++where.index;
      if (p >= 1 || (p > 0 && u < p)) {
        option[c * picks_ + picked++] = i;
        u = -1;
      } else if (p > 0) {
        u = (u - p) / (1 - p);
      }
    }
  }
  return {rows, ChosenOptions{std::move(option), picks_}};
}

template <class T>
Choice<T> Subsets<T>::mode(Tape<T>&, const RowsPtr& rows) const {
  const auto from = parent_choices_of(*rows, this->columns());
  std::vector<int> option(from.size() * picks_, -1);
  for (std::size_t c = 0; c < from.size(); ++c) {
    auto best = possible(from[c]);
    const T* x = logits_.value().row(from[c]);
    std::stable_sort(best.begin(), best.end(), [&](int i, int j) { return x[i] > x[j]; });
    best.resize(std::min(best.size(), static_cast<std::size_t>(picks_)));
    std::sort(best.begin(), best.end());
    std::copy(best.begin(), best.end(), option.begin() + static_cast<std::ptrdiff_t>(c * picks_));
  }
  return {rows, ChosenOptions{std::move(option), picks_}};
}

template <class T>
Choice<T> Subsets<T>::mean(const RowsPtr& rows) const {
  return {rows,
          Relaxed<T>{{}, gather_rows(marginals(), std::span<const int>(parent_choices_of(*rows, this->columns()))), picks_}};
}

template <class T>
Choice<T> Subsets<T>::enumerate(Tape<T>&, const RowsPtr& asking, int step, const Visits& visits) const {
  auto sets = enumerated_sets(
      asking->size(), this->columns(), [&](std::size_t choice) { return answers(choice); }, step, visits);
  auto choice = nth_answer(Rows::after(asking, std::move(sets.parent), step), sets.answer);
  choice.side_by_side = visits.side_by_side;
  choice.spare = std::move(sets.spare);
  return choice;
}

template <class T>
Var<T> Subsets<T>::log_probability(const Choice<T>& choice) const {
  const auto from = parent_choices_of(*choice.rows, this->columns());
  return reshape(subset_log_probability(logits_, std::span<const int>(options_), picks_, std::span<const int>(from),
                                        std::span<const int>(choice.picked())),
                 this->columns());
}

template <class T>
std::vector<double> Subsets<T>::squared_scores(const Choice<T>& choice) const {  // |1_S - pi|^2
  const auto pi = marginals().value();
  const auto from = parent_choices_of(*choice.rows, this->columns());
  std::vector<double> result(from.size());
  for (std::size_t c = 0; c < from.size(); ++c) {
    const auto subset = std::span(choice.picked()).subspan(c * picks_, picks_);
    for (int i = 0; i < options_[from[c]]; ++i) {
      const double in = std::find(subset.begin(), subset.end(), i) != subset.end(),
                   off = in - static_cast<double>(pi(from[c], i));
      result[c] += off * off;
    }
  }
  return result;
}

template <class T>
Var<T> Subsets<T>::entropy() const {
  return group_sums(subset_entropy(logits_, std::span<const int>(options_), picks_), this->columns());
}

// E log p / p' = sum_i w_i (x_i - x'_i) - log Z + log Z', under weights w
template <class T>
Var<T> Subsets<T>::log_ratio_under(Var<T> weights, const std::vector<int>& from, const Distribution<T>& other) const {
  const auto& p = same_kind(other);
  const auto normaliser = subtract(p.log_normaliser(), log_normaliser());
  return add(hardgrad::log_ratio(weights, logits_, p.logits_, std::span<const int>(from)),
             gather_rows(normaliser, std::span<const int>(from)));
}

template <class T>
Var<T> Subsets<T>::divergence(const Distribution<T>& other) const {
  std::vector<int> each(options_.size());
  std::iota(each.begin(), each.end(), 0);
  return group_sums(log_ratio_under(marginals(), each, other), this->columns());
}

template <class T>
Var<T> Subsets<T>::log_ratio(const Choice<T>& choice, const Distribution<T>& other) const {
  return reshape(log_ratio_under(choice.weights(), parent_choices_of(*choice.rows, this->columns()), other), this->columns());
}

template class Subsets<float>;
template class Subsets<double>;

}  // namespace hardgrad
