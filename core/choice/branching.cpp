#include "core/choice/branching.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/choice/handlers.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

void require_changes(double rows, int columns, double cap) {
  constexpr double choices_per_row = 100;
  const double choices = rows * columns;
  if (rows <= cap && choices <= choices_per_row * cap) return;
  throw NotExact(
      fmt::format("changing one choice at a time needs {:.6g} rows of {} choices ({:.6g} choices in all), more than the cap of "
                  "{:.6g} rows and {:.6g} choices: take fewer samples, choices, options or examples, an estimator with a fixed "
                  "number of rows (rloo), or raise the setting `cap`",
                  rows, columns, choices, cap, choices_per_row * cap));
}

template <class T>
Choice<T> BranchingHandler<T>::choose(Tape<T>&, const Question<T>& question) {
  const auto& options = question.categories().options();
  const bool root = question.site.rows->is_root();
  const int D = question.site.columns, all = samples_ * static_cast<int>(id_.size());
  if (root) {
    runs_.push_back({.choosing = std::vector<std::vector<int>>(all)});
    for (int n = 0; n < all; ++n) runs_.back().branches.push_back({n, -1, true, 0});
  }
  auto& run = runs_.back();
  run.last = question.step;
  const int first_choice = static_cast<int>(run.choices.size());
  for (int d = 0; d < D; ++d) run.choices.push_back({question.step, d});

  const auto log_p = question.categories().log_p().value();
  const auto asks = [&](std::size_t j) { return root ? run.branches[j].sample / samples_ : static_cast<int>(j); };
  double rows = 0;
  for (std::size_t j = 0; j < run.branches.size(); ++j, ++rows)
    for (int d = 0; d < D && run.branches[j].is_sample(); ++d) rows += options[asks(j) * D + d] - 1;
  require_changes(rows, D, cap_);
  const auto takes = [&](int row, int d, int i) {
    const int choice = row * D + d;
    return i < options[choice] && static_cast<double>(log_p(choice, i)) != -INFINITY;
  };
  std::vector<int> taken(static_cast<std::size_t>(all) * D);  // the options of each sample
  for (std::size_t j = 0; j < run.branches.size(); ++j) {
    const int sample = run.branches[j].sample;
    for (int d = 0; d < D && run.branches[j].is_sample(); ++d)
      taken[sample * D + d] = draw_option(question, asks(j) * D + d, random_,
                                          {.example = id_[sample / samples_],
                                           .replica = static_cast<std::uint32_t>(sample % samples_),
                                           .step = static_cast<std::uint32_t>(question.step),
                                           .column = static_cast<std::uint32_t>(d)});
  }

  std::vector<int> parent, option;
  std::vector<Branch> next;
  for (std::size_t j = 0; j < run.branches.size(); ++j) {
    const auto [sample, left, possible, before] = run.branches[j];
    const int row = asks(j);
    int choosing = before;
    for (int d = 0; d < D; ++d) choosing += options[row * D + d] > 1;
    const auto first = taken.begin() + static_cast<std::ptrdiff_t>(sample) * D;
    const std::vector<int> own(first, first + D);
    const auto go_on = [&](const std::vector<int>& set, Branch branch) {
      parent.push_back(row);
      option.insert(option.end(), set.begin(), set.end());
      next.push_back(branch);
    };
    if (left >= 0) {
      bool still = possible;
      for (int d = 0; d < D; ++d) still = still && takes(row, d, own[d]);
      go_on(still ? own : std::vector<int>(D), {sample, left, still, choosing});
      continue;
    }
    go_on(own, {sample, left, possible, choosing});
    for (int d = 0; d < D; ++d) {
      if (options[row * D + d] == 1) continue;
      run.choosing[sample].push_back(first_choice + d);
      auto other = own;
      for (other[d] = 0; other[d] < options[row * D + d]; ++other[d])
        if (other[d] != own[d] && takes(row, d, other[d])) go_on(other, {sample, first_choice + d, true, choosing});
    }
  }
  run.branches = std::move(next);
  return {Rows::after(question.site.rows, std::move(parent), question.step), ChosenOptions{std::move(option)}};
}

template class BranchingHandler<float>;
template class BranchingHandler<double>;

}  // namespace hardgrad
