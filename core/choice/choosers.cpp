#include "core/choice/choosers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/softmax.hpp"
#include "core/kernels/functions.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

template <class T>
RowsPtr fan_out(const Question<T>& question, int copies) {
  std::vector<int> parent(question.site.rows->size() * copies);
  for (std::size_t r = 0; r < parent.size(); ++r) parent[r] = static_cast<int>(r) / copies;
  return Rows::after(question.site.rows, std::move(parent), question.step);
}

template <class T>
int draw_option(const Question<T>& question, int cell, Randomness& random, Draw where) {
  const auto options = static_cast<std::size_t>(question.site.options[cell]);
  if (options == 1) return 0;
  const T* log_p = question.log_p.value().row(cell);
  std::vector<double> p(log_p, log_p + options);
  kernels::map(p.data(), p.data(), options, [](const auto& v) { return kernels::exp<double>(v); });
  return random.categorical(p, where);
}

template <class T>
std::vector<int> draw_options(const Question<T>& question, const Rows& rows, Randomness& random,
                              const std::vector<std::uint32_t>& id, const std::vector<bool>* skip) {
  const std::size_t D = question.site.columns;
  std::vector<int> option(rows.size() * D);
  const auto log_p = question.log_p.value();
  const auto p = question.log_p.tape->template scratch<double>(log_p.size());  // of all rows that ask, in double
  std::copy_n(log_p.data, log_p.size(), p.data());
  kernels::map(p.data(), p.data(), p.size(), [](const auto& v) { return kernels::exp<double>(v); });
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (skip && (*skip)[rows.example[r]]) continue;
    Draw where{.example = id[rows.example[r]],
               .replica = static_cast<std::uint32_t>(rows.replica[r]),
               .step = static_cast<std::uint32_t>(question.step)};
    for (std::size_t d = 0; d < D; ++d) {
      const std::size_t cell = rows.parent[r] * D + d, options = question.site.options[cell];
      where.column = static_cast<std::uint32_t>(d);
      if (options > 1) option[r * D + d] = random.categorical({p.data() + cell * log_p.cols, options}, where);
    }
  }
  return option;
}

template <class T>
Choice<T> SampleChooser<T>::choose(Tape<T>&, const Question<T>& question) {
  auto rows = fan_out(question, question.site.rows->is_root() ? samples_ : 1);
  auto option = draw_options(question, *rows, random_, id_);
  return {rows, std::move(option), {}};
}

template <class T>
std::vector<int> EnumerateChooser<T>::visited(const Question<T>& question, int cell) const {
  std::vector<int> all(question.site.options[cell]);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

template <class T>
Choice<T> EnumerateChooser<T>::choose(Tape<T>&, const Question<T>& question) {
  const auto& site = question.site;
  const std::size_t D = site.columns;
  const auto* declared = structure_ ? structure_->site(site.name) : nullptr;
  const bool side_by_side = D > 1 && declared && declared->reach == Reach::own_column;
  std::vector<int> parent, option;
  std::vector<char> spare;
  for (std::size_t r = 0; r < site.rows->size(); ++r) {
    std::vector<std::vector<int>> of_column;
    double sets = 1, most = 1;
    for (std::size_t d = 0; d < D; ++d) {
      of_column.push_back(visited(question, static_cast<int>(r * D + d)));
      sets *= static_cast<double>(of_column[d].size());
      most = std::max(most, static_cast<double>(of_column[d].size()));
    }
    const double rows = side_by_side ? most : sets;
    if (static_cast<double>(parent.size()) + rows > cap())
      throw NotExact(fmt::format("choice {} has more than {:.6g} rows to visit: take fewer steps, columns, options or examples",
                                 question.step + 1, cap()));
    parent.insert(parent.end(), static_cast<std::size_t>(rows), static_cast<int>(r));
    if (side_by_side) {
      for (std::size_t i = 0; i < most; ++i)
        for (const auto& options : of_column) {
          spare.push_back(i >= options.size());
          option.push_back(options[std::min(i, options.size() - 1)]);
        }
      continue;
    }
    std::vector<std::size_t> set(D);
    for (bool more = true; more;) {
      for (std::size_t d = 0; d < D; ++d) option.push_back(of_column[d][set[d]]);
      more = false;
      for (std::size_t d = D; d-- > 0 && !more;)  // the last column counts up first
        if (++set[d] < of_column[d].size())
          more = true;
        else
          set[d] = 0;
    }
  }
  return {.rows = Rows::after(site.rows, std::move(parent), question.step),
          .option = std::move(option),
          .weights = {},
          .side_by_side = side_by_side,
          .spare = std::move(spare)};
}

template <class T>
Choice<T> ForcedChooser<T>::choose(Tape<T>&, const Question<T>& question) {
  const auto asking = question.site.options.size();
  const auto step = static_cast<std::size_t>(question.step);
  if (step >= option_.size() || option_[step].size() % asking != 0)
    throw Bug("forced choices do not fit the model's questions");
  return {fan_out(question, static_cast<int>(option_[step].size() / asking)), option_[step], {}};
}

template <class T>
Choice<T> GreedyChooser<T>::choose(Tape<T>&, const Question<T>& question) {
  const auto log_p = question.log_p.value();
  std::vector<int> option(log_p.rows);
  for (std::size_t r = 0; r < log_p.rows; ++r)
    option[r] = static_cast<int>(std::max_element(log_p.row(r), log_p.row(r) + question.site.options[r]) - log_p.row(r));
  return {fan_out(question, 1), std::move(option), {}};
}

template <class T>
Choice<T> ExpectedChooser<T>::choose(Tape<T>&, const Question<T>& question) {
  return {fan_out(question, 1), {}, probabilities(question.log_p)};
}

#define HARDGRAD_INSTANTIATE(T)                                                                                           \
  template RowsPtr fan_out(const Question<T>&, int);                                                                      \
  template int draw_option(const Question<T>&, int, Randomness&, Draw);                                                   \
  template std::vector<int> draw_options(const Question<T>&, const Rows&, Randomness&, const std::vector<std::uint32_t>&, \
                                         const std::vector<bool>*);                                                       \
  template class SampleChooser<T>;                                                                                        \
  template class EnumerateChooser<T>;                                                                                     \
  template class ForcedChooser<T>;                                                                                        \
  template class GreedyChooser<T>;                                                                                        \
  template class ExpectedChooser<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
