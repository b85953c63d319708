#include "core/choice/choosers.hpp"

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
Choice<T> EnumerateChooser<T>::choose(Tape<T>&, const Question<T>& question) {
  const auto& options = question.site.options;
  const std::size_t D = question.site.columns, asking = question.site.rows->size();
  std::size_t total = 0;
  for (std::size_t r = 0; r < asking; ++r)
    total += std::accumulate(options.begin() + static_cast<std::ptrdiff_t>(r * D),
                             options.begin() + static_cast<std::ptrdiff_t>((r + 1) * D), std::size_t{1}, std::multiplies<>());
  std::vector<int> parent, option, set(D);
  parent.reserve(total);
  option.reserve(total * D);
  for (std::size_t r = 0; r < asking; ++r) {
    const int* most = options.data() + r * D;
    std::fill(set.begin(), set.end(), 0);
    for (bool more = true; more;) {
      parent.push_back(static_cast<int>(r));
      option.insert(option.end(), set.begin(), set.end());
      more = false;
      for (std::size_t d = D; d-- > 0 && !more;)  // the last column counts up first
        if (++set[d] < most[d])
          more = true;
        else
          set[d] = 0;
    }
  }
  return {Rows::after(question.site.rows, std::move(parent), question.step), std::move(option), {}};
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
