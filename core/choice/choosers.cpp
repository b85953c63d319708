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
int draw_option(const Question<T>& question, int row, Randomness& random, Draw where) {
  const auto options = static_cast<std::size_t>(question.site.options[row]);
  if (options == 1) return 0;
  const T* log_p = question.log_p.value().row(row);
  std::vector<double> p(log_p, log_p + options);
  kernels::map(p.data(), p.data(), options, [](const auto& v) { return kernels::exp<double>(v); });
  return random.categorical(p, where);
}

template <class T>
std::vector<int> draw_options(const Question<T>& question, const Rows& rows, Randomness& random,
                              const std::vector<std::uint32_t>& id, const std::vector<bool>* skip) {
  std::vector<int> option(rows.size());
  const auto log_p = question.log_p.value();
  const auto p = question.log_p.tape->template scratch<double>(log_p.size());  // of all rows that ask, in double
  std::copy_n(log_p.data, log_p.size(), p.data());
  kernels::map(p.data(), p.data(), p.size(), [](const auto& v) { return kernels::exp<double>(v); });
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const auto options = static_cast<std::size_t>(question.site.options[rows.parent[r]]);
    if (options > 1 && (!skip || !(*skip)[rows.example[r]]))
      option[r] = random.categorical({p.data() + rows.parent[r] * log_p.cols, options},
                                     {.example = id[rows.example[r]],
                                      .replica = static_cast<std::uint32_t>(rows.replica[r]),
                                      .step = static_cast<std::uint32_t>(question.step)});
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
  const auto total = std::accumulate(options.begin(), options.end(), std::size_t{0});
  std::vector<int> parent, option;
  parent.reserve(total);
  option.reserve(total);
  for (std::size_t r = 0; r < options.size(); ++r)
    for (int i = 0; i < options[r]; ++i) {
      parent.push_back(static_cast<int>(r));
      option.push_back(i);
    }
  return {Rows::after(question.site.rows, std::move(parent), question.step), std::move(option), {}};
}

template <class T>
Choice<T> ForcedChooser<T>::choose(Tape<T>&, const Question<T>& question) {
  const auto asking = question.site.rows->size();
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

#define HARDGRAD_INSTANTIATE(T)                                                                         \
  template RowsPtr fan_out(const Question<T>&, int);                                                    \
  template int draw_option(const Question<T>&, int, Randomness&, Draw);                                 \
  template std::vector<int> draw_options(const Question<T>&, const Rows&, Randomness&,                  \
                                         const std::vector<std::uint32_t>&, const std::vector<bool>*);  \
  template class SampleChooser<T>;                                                                      \
  template class EnumerateChooser<T>;                                                                   \
  template class ForcedChooser<T>;                                                                      \
  template class GreedyChooser<T>;                                                                      \
  template class ExpectedChooser<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
