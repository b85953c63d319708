#include "core/estimator/coupling/measure_valued.hpp"

#include <cmath>
#include <numbers>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/normal.hpp"
#include "core/estimator/paths.hpp"

namespace hardgrad {
namespace {

/// The two halves of each of the two pairs.
enum Half { above, below, wider, as_it_is, halves };

/// A row of the run: a sample's base path, or a branch that left it at one column of a choice.
struct Branch {
  int sample;
  int step = -1, column = 0;
  Half half = above;
  bool base() const { return step < 0; }
};

template <class T>
class MeasureValuedHandler final : public Handler<T> {
 public:
  MeasureValuedHandler(int samples, const Problem<T>& problem) : random_(problem.random), id_(problem.batch.id) {
    for (int n = 0; n < samples * problem.batch.examples(); ++n) branches_.push_back({n});
    samples_ = samples;
  }
  const std::vector<Branch>& branches() const { return branches_; }
  /// [step][sample] the row of the base path that asked.
  const std::vector<std::vector<int>>& asked() const { return asked_; }

  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto& distribution = as_normal(*question.distribution);
    const bool root = question.site.rows->is_root();
    const auto D = static_cast<std::size_t>(question.site.columns);
    std::vector<Branch> next;
    std::vector<int> parent;
    std::vector<double> e, base(D);
    auto& asked = asked_.emplace_back();
    const auto go_on = [&](int row, const Branch& branch) {
      parent.push_back(row);
      next.push_back(branch);
      e.insert(e.end(), base.begin(), base.end());
    };
    for (std::size_t j = 0; j < branches_.size();) {
      const int sample = branches_[j].sample, row = root ? sample / samples_ : static_cast<int>(j);
      Draw where{.example = id_[sample / samples_],
                 .replica = static_cast<std::uint32_t>(sample % samples_),
                 .step = static_cast<std::uint32_t>(question.step)};
      const auto draw = [&](Standard noise, std::uint32_t index, std::size_t column) {
        where.index = index;
        where.column = static_cast<std::uint32_t>(column);
        return random_.standard(noise, where);
      };
      for (std::size_t d = 0; d < D; ++d) base[d] = draw(Standard::normal, 0, d);
      asked.push_back(row);
      for (; j < branches_.size() && branches_[j].sample == sample; ++j) go_on(root ? row : static_cast<int>(j), branches_[j]);
      for (std::size_t d = 0; d < D; ++d) {
        const double w = draw(Standard::weibull, 1, d), m = draw(Standard::double_maxwell, 2, d);
        const double moved[halves] = {w, -w, m, m * draw(Standard::uniform, 3, d)};
        for (int half = 0; half < halves; ++half) {
          go_on(row, {sample, question.step, static_cast<int>(d), static_cast<Half>(half)});
          e[e.size() - D + d] = moved[half];
        }
      }
    }
    branches_ = std::move(next);
    return distribution.at(tape, Rows::after(question.site.rows, std::move(parent), question.step), e, false);
  }

 private:
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  int samples_;
  std::vector<Branch> branches_;
  std::vector<std::vector<int>> asked_;
};

}  // namespace

template <class T>
Estimate<T> measure_valued_of_normals(const Problem<T>& problem, int samples) {
  MeasureValuedHandler<T> handler(samples, problem);
  auto episode = problem.run(handler);
  const auto paths = paths_to(*episode, static_cast<int>(episode->steps().size()) - 1);
  const auto f = path_cost_values(*episode, paths, true);
  const double share = 1.0 / (samples * problem.batch.examples());

  // Slopes of the estimate in the means and log scales of the rows that asked; each is a difference of two losses.
  const auto& steps = episode->steps();
  std::vector<std::vector<double>> mean, log_scale;
  for (const auto& step : steps) {
    mean.emplace_back(step.question.site.rows->size() * step.question.site.columns);
    log_scale.push_back(mean.back());
  }
  std::vector<double> path(f.size());
  double loss = 0;
  for (std::size_t n = 0; n < f.size(); ++n) {
    const auto& branch = handler.branches()[n];
    if (branch.base()) {
      path[n] = share;
      loss += share * f[n];
    } else if (branch.half == above || branch.half == wider) {
      const auto& site = steps[branch.step].question;
      const std::size_t choice = handler.asked()[branch.step][branch.sample] * site.site.columns + branch.column;
      const double difference = share * (f[n] - f[n + 1]);  // the next row is the other half
      const double scale = std::exp(static_cast<double>(as_normal(*site.distribution).log_scale().value().data[choice]));
      if (branch.half == above)
        mean[branch.step][choice] += difference / (scale * std::sqrt(2 * std::numbers::pi));
      else
        log_scale[branch.step][choice] += difference;
    }
  }
  auto surrogate = weighted_sum(path_cost(*episode, paths, true), std::span<const double>(path));
  for (std::size_t t = 0; t < steps.size(); ++t) {
    const auto& distribution = as_normal(*steps[t].question.distribution);
    surrogate = add(surrogate, add(weighted_sum(distribution.location(), std::span<const double>(mean[t])),
                                   weighted_sum(distribution.log_scale(), std::span<const double>(log_scale[t]))));
  }
  return {.surrogate = surrogate, .episode = std::move(episode), .loss = loss};
}

template Estimate<float> measure_valued_of_normals(const Problem<float>&, int);
template Estimate<double> measure_valued_of_normals(const Problem<double>&, int);

}  // namespace hardgrad
