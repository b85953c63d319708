#include "core/choice/subsets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/categorical.hpp"
#include "core/choice/distribution.hpp"
#include "core/choice/structure.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

constexpr double most_listed = 1e6;  // subsets of one choice

template <class T>
Subsets<T>::Subsets(Var<T> logits, std::vector<int> options, SubsetSize subset_size, int columns)
    : Distribution<T>(options.size() / columns, columns),
      logits_(logits),
      options_(std::move(options)),
      subset_size_(std::move(subset_size)) {
  const auto& each = subset_size_.by_choice;
  if (options_.size() % columns != 0 || logits.rows() != options_.size() || (!each.empty() && each.size() != options_.size()))
    throw Bug("a site's logits, options and picks must have one row per column of each asking row");
  if (subset_size_.most < 1) throw Bug("a subset must have at least one option");
  for (std::size_t c = 0; c < each.size(); ++c) {
    if (each[c] > subset_size_.most) throw Bug("a choice picks more options than the most of its site");
    if (each[c] < 1) throw UsageError(fmt::format("choice {} is to pick {} options: a subset has at least one", c, each[c]));
  }
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
  for (std::size_t c = row * D; c < (row + 1) * D; ++c)
    if (possible(c).size() > static_cast<std::size_t>(subset_size_of(c))) return true;
  return false;
}

template <class T>
double Subsets<T>::support_size(std::size_t choice) const {
  return subsets_of(static_cast<int>(possible(choice).size()), subset_size_of(choice));
}

template <class T>
std::vector<int> Subsets<T>::listed(std::size_t choice) const {
  const double count = support_size(choice);
  if (count > most_listed) throw NotExact(fmt::format("a choice has {:.6g} subsets, too many to visit one by one", count));
  const auto options = possible(choice);
  const auto most = static_cast<std::size_t>(subset_size());
  std::vector<int> option(static_cast<std::size_t>(count) * most);
  for (std::size_t s = 0; s < option.size() / most; ++s)
    write_subset(options, subset_size_of(choice), s, std::span(option).subspan(s * most, most));
  return option;
}

template <class T>
std::vector<double> Subsets<T>::log_p_of_answers(std::size_t choice) const {
  const auto option = listed(choice);
  const int only[] = {static_cast<int>(choice)}, options[] = {options_[choice]};
  const std::vector<int> parent(option.size() / subset_size());
  const auto found = log_p(gather_rows(logits_.tape->detach(logits_), std::span<const int>(only)), options,
                           subset_size_of(choice), std::span<const int>(parent), std::span<const int>(option));
  return {found.value().data, found.value().data + found.rows()};
}

template <class T>
std::vector<double> Subsets<T>::parameters_at(std::size_t row, std::size_t column) const {
  const std::size_t choice = row * this->columns() + column;
  const T* first = marginals().value().row(choice);
  return {first, first + options_[choice]};
}

template <class T>
void Subsets<T>::write_subset(std::span<const int> possible, int subset_size, std::size_t index, std::span<int> to) const {
  std::fill(to.begin(), to.end(), -1);
  const int n = static_cast<int>(possible.size()), k = std::min(subset_size, n);
  auto left = static_cast<double>(index);
  for (int j = 0, i = 0; j < k; ++j, ++i) {
    for (double with; left >= (with = subsets_of(n - i - 1, k - j - 1)); ++i) left -= with;
    to[j] = possible[i];
  }
}

template <class T>
Choice<T> Subsets<T>::unrank(const RowsPtr& rows, const std::vector<int>& index) const {
  const auto from = parent_choices_of(*rows, this->columns());
  const auto most = static_cast<std::size_t>(subset_size());
  std::vector<int> option(from.size() * most);
  for (std::size_t c = 0; c < from.size(); ++c)
    write_subset(possible(from[c]), subset_size_of(from[c]), index[c], std::span(option).subspan(c * most, most));
  return {rows, ChosenOptions{std::move(option), subset_size()}};
}

template <class T>
Var<T> Subsets<T>::marginals() const {
  if (!marginals_) marginals_ = find_marginals();
  return marginals_;
}

template <class T>
Choice<T> Subsets<T>::sample(Tape<T>&, const RowsPtr& rows, const Noise& noise) const {
  const std::size_t D = this->columns();
  const auto from = parent_choices_of(*rows, this->columns());
  const auto where = [&](std::size_t c) { return noise.at(*rows, c / D, c % D); };
  if (!noise.random.enumerates()) return {rows, ChosenOptions{draw(from, noise.random, where), subset_size()}};
  std::vector<int> index(from.size());  // of all ways to draw it, the one with the fewest outcomes
  for (std::size_t c = 0; c < from.size(); ++c) {
    if (support_size(from[c]) == 1) continue;
    auto p = log_p_of_answers(from[c]);
    for (double& v : p) v = std::exp(v);
    index[c] = noise.random.categorical(p, where(c));
  }
  return unrank(rows, index);
}

template <class T>
Choice<T> Subsets<T>::mode(Tape<T>&, const RowsPtr& rows) const {
  const auto from = parent_choices_of(*rows, this->columns());
  std::vector<int> option(from.size() * subset_size(), -1);
  for (std::size_t c = 0; c < from.size(); ++c) {
    auto best = possible(from[c]);
    const T* x = logits_.value().row(from[c]);
    std::stable_sort(best.begin(), best.end(), [&](int i, int j) { return x[i] > x[j]; });
    best.resize(std::min(best.size(), static_cast<std::size_t>(subset_size_of(from[c]))));
    std::sort(best.begin(), best.end());
    std::copy(best.begin(), best.end(), option.begin() + static_cast<std::ptrdiff_t>(c * subset_size()));
  }
  return {rows, ChosenOptions{std::move(option), subset_size()}};
}

template <class T>
Choice<T> Subsets<T>::mean(const RowsPtr& rows) const {
  return {
      rows,
      Relaxed<T>{{}, gather_rows(marginals(), std::span<const int>(parent_choices_of(*rows, this->columns()))), subset_size()}};
}

template <class T>
Choice<T> Subsets<T>::enumerate(Tape<T>&, const RowsPtr& asking, int step, const Visits& visits) const {
  auto sets = enumerated_sets(
      asking->size(), this->columns(), [&](std::size_t choice) { return support_size(choice); }, step, visits);
  auto choice = unrank(Rows::after(asking, std::move(sets.parent), step), sets.answer);
  choice.side_by_side = visits.side_by_side;
  choice.padding_mask = std::move(sets.padding_mask);
  return choice;
}

template <class T>
Var<T> Subsets<T>::log_probability(const Choice<T>& choice) const {
  const auto from = parent_choices_of(*choice.rows, this->columns());
  return reshape(log_p(logits_, options_, each(), from, choice.picked()), this->columns());
}

template <class T>
std::vector<double> Subsets<T>::squared_scores(const Choice<T>& choice) const {
  const auto from = parent_choices_of(*choice.rows, this->columns());
  std::vector<double> result;
  for (std::size_t c = 0; c < from.size(); ++c) {
    const auto of = this->score(from[c], std::span(choice.picked()).subspan(c * subset_size(), subset_size()));
    result.push_back(std::inner_product(of.begin(), of.end(), of.begin(), 0.0));
  }
  return result;
}

template <class T>
Var<T> Subsets<T>::entropy() const {
  return group_sums(entropies(), this->columns());
}

template <class T>
std::shared_ptr<const Subsets<T>> subsets(Var<T> logits, std::vector<int> options, SubsetSize subset_size, int columns,
                                          SubsetDistribution law) {
  if (law == SubsetDistribution::plackett_luce)
    return plackett_luce(logits, std::move(options), std::move(subset_size), columns);
  return conditional_poisson(logits, std::move(options), std::move(subset_size), columns);
}

template class Subsets<float>;
template class Subsets<double>;
template std::shared_ptr<const Subsets<float>> subsets(Var<float>, std::vector<int>, SubsetSize, int, SubsetDistribution);
template std::shared_ptr<const Subsets<double>> subsets(Var<double>, std::vector<int>, SubsetSize, int, SubsetDistribution);

}  // namespace hardgrad
