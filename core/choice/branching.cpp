#include "core/choice/branching.hpp"

#include <cmath>

namespace hardgrad {

template <class T>
Choice<T> BranchingChooser<T>::choose(Tape<T>&, const Question<T>& question) {
  question.require_options();
  const bool root = question.site.rows->is_root();
  if (root) {
    branches_.clear();
    for (int n = 0; n < samples_ * static_cast<int>(id_.size()); ++n) branches_.push_back({n, -1, true});
    choosing_.assign(branches_.size(), {});
  }
  const auto log_p = question.log_p.value();
  const auto asks = [&](std::size_t j) { return root ? branches_[j].sample / samples_ : static_cast<int>(j); };
  const auto takes = [&](int row, int i) {
    return i < question.site.options[row] && static_cast<double>(log_p(row, i)) != -INFINITY;
  };
  std::vector<int> taken(choosing_.size());  // by each sample
  for (std::size_t j = 0; j < branches_.size(); ++j)
    if (branches_[j].is_sample()) taken[branches_[j].sample] = draw(question, asks(j), branches_[j].sample);

  std::vector<int> parent, option;
  std::vector<Branch> next;
  for (std::size_t j = 0; j < branches_.size(); ++j) {
    const auto [sample, left, possible] = branches_[j];
    const int row = asks(j);
    const auto go_on = [&](int i, Branch branch) {
      parent.push_back(row);
      option.push_back(i);
      next.push_back(branch);
    };
    if (left >= 0) {
      const bool still = possible && takes(row, taken[sample]);
      go_on(still ? taken[sample] : 0, {sample, left, still});
      continue;
    }
    go_on(taken[sample], branches_[j]);
    if (question.site.options[row] > 1) choosing_[sample].push_back(question.step);
    for (int i = 0; i < question.site.options[row]; ++i)
      if (i != taken[sample] && takes(row, i)) go_on(i, {sample, question.step, true});
  }
  branches_ = std::move(next);
  return {Rows::after(question.site.rows, std::move(parent), question.step), std::move(option), {}};
}

template <class T>
int BranchingChooser<T>::draw(const Question<T>& question, int row, int sample) {
  const int options = question.site.options[row];
  if (options == 1) return 0;
  std::vector<double> p(options);
  for (int i = 0; i < options; ++i) p[i] = std::exp(static_cast<double>(question.log_p.value()(row, i)));
  return random_.categorical(p, {.example = id_[sample / samples_],
                                 .replica = static_cast<std::uint32_t>(sample % samples_),
                                 .step = static_cast<std::uint32_t>(question.step)});
}

template class BranchingChooser<float>;
template class BranchingChooser<double>;

}  // namespace hardgrad
