// local_expectation: every choice in turn is enumerated, all others kept as sampled.
//
//   g = 1/K sum_k sum_t sum_i q(i | z_{-t}) (f(i, z_{-t}) - b) grad log p(i | z_{<t}) + path,
//   q(i | z_{-t}) proportional to p(i | z_{<t}) prod_{u > t} p(z_u | z_{<t}, i, z_{t+1..u-1})
//
// Titsias & Lazaro-Gredilla 2015, Local expectation gradients for black box variational inference, eq. 8-9; where choices
// depend on each other q is the exact conditional of z_t given all others, later ones included.
// Target: expected loss. Bias: none: each term is E[(f - b) grad log p(z_t | z_{<t}) | z_{-t}].
// Cost: K (1 + sum_t (S_t - 1)) rows at the last choice, one run. With independent choices q = p and only the step's own
// cost can matter, so that this is `exact`: S rows a step, nothing sampled.
// The path term is sum_i q(i | z_{-t}) grad f(i, z_{-t}), averaged over the steps that choose. Departures: b is an addition
// (0: as published); several samples K are averaged.
#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/choosers.hpp"
#include "core/estimator/objectives.hpp"
#include "core/estimator/paths.hpp"
#include "core/estimator/score_function.hpp"

namespace hardgrad {
namespace {

constexpr int main_row = -1;

/// Keeps for every sample one row that is sampled, and rows that left it at one step and then choose what it chooses.
template <class T>
class BranchingChooser final : public Chooser<T> {
 public:
  struct Branch {
    int sample;    ///< b K + k
    int left;      ///< the step at which it left the sample's own row, or main_row
    bool possible;  ///< false if what the sample chose later has probability 0 here
  };
  BranchingChooser(int samples, Randomness& random, const std::vector<std::uint32_t>& id)
      : samples_(samples), random_(random), id_(id) {}
  const std::vector<Branch>& branches() const { return branches_; }
  /// choosing()[sample]: the steps at which it had a choice.
  const std::vector<std::vector<int>>& choosing() const { return choosing_; }

  Choice<T> choose(Tape<T>&, const Question<T>& question) override {
    if (question.site.rows->is_root()) start();
    const auto log_p = question.log_prior.value();
    const auto asks = [&](std::size_t j) {
      return question.site.rows->is_root() ? branches_[j].sample / samples_ : static_cast<int>(j);
    };
    std::vector<int> sampled(choosing_.size());
    for (std::size_t j = 0; j < branches_.size(); ++j)
      if (branches_[j].left == main_row) sampled[branches_[j].sample] = draw(question, asks(j), branches_[j].sample);
    std::vector<int> parent, option;
    std::vector<Branch> next;
    const auto go_on = [&](std::size_t j, int i, Branch branch) {
      parent.push_back(asks(j));
      option.push_back(i);
      next.push_back(branch);
    };
    for (std::size_t j = 0; j < branches_.size(); ++j) {
      const auto& [sample, left, possible] = branches_[j];
      const int r = asks(j), options = question.site.options[r], kept = sampled[sample];
      if (left != main_row) {
        const bool still = possible && kept < options && std::isfinite(static_cast<double>(log_p(r, kept)));
        go_on(j, still ? kept : 0, {sample, left, still});
        continue;
      }
      go_on(j, kept, branches_[j]);
      if (options > 1) choosing_[sample].push_back(question.step);
      for (int i = 0; i < options; ++i)
        if (i != kept && std::isfinite(static_cast<double>(log_p(r, i)))) go_on(j, i, {sample, question.step, true});
    }
    branches_ = std::move(next);
    return {Rows::after(question.site.rows, std::move(parent), question.step), std::move(option), {}};
  }

 private:
  void start() {
    branches_.clear();
    for (int n = 0; n < samples_ * static_cast<int>(id_.size()); ++n) branches_.push_back({n, main_row, true});
    choosing_.resize(branches_.size());
  }
  int draw(const Question<T>& question, int row, int sample) {
    const int options = question.site.options[row];
    if (options == 1) return 0;
    std::vector<double> p(options);
    for (int i = 0; i < options; ++i) p[i] = std::exp(static_cast<double>(question.log_prior.value()(row, i)));
    return random_.categorical(p, {.example = id_[sample / samples_],
                                   .replica = static_cast<std::uint32_t>(sample % samples_),
                                   .step = static_cast<std::uint32_t>(question.step)});
  }

  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  std::vector<Branch> branches_;
  std::vector<std::vector<int>> choosing_;
};

template <class T>
class LocalExpectation final : public Estimator<T> {
 public:
  LocalExpectation(const Settings& settings, const Structure& structure, Key)
      : samples_(settings.integer("samples")),
        baseline_(settings.real("baseline")),
        dependent_(structure.dependence == Dependence::sequential) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    auto& [tape, model, batch, random] = problem;
    if (!dependent_)
      return exact_objective<T>({Target::Kind::expected_loss}, problem, std::numeric_limits<double>::infinity());

    BranchingChooser<T> chooser(samples_, random, batch.id);
    auto episode = std::make_unique<Episode<T>>(tape, chooser, batch.examples());
    model.run(batch, *episode);
    const auto paths = paths_to_leaves(*episode);
    const auto f = path_cost_values(*episode, paths, true);
    const auto log_p = path_log_probability(*episode, paths).value();
    const auto& branches = chooser.branches();
    const std::size_t samples = chooser.choosing().size();
    const double share = 1.0 / static_cast<double>(samples);

    std::vector<std::vector<std::size_t>> leaves(samples);
    for (std::size_t n = 0; n < branches.size(); ++n) leaves[branches[n].sample].push_back(n);
    std::vector<std::vector<double>> score;  // [steps][rows of the step]
    for (const auto& step : episode->steps()) score.emplace_back(step.choice.rows->size());
    std::vector<double> path(branches.size());
    double loss = 0;
    for (std::size_t sample = 0; sample < samples; ++sample) {
      const auto& steps = chooser.choosing()[sample];
      for (std::size_t n : leaves[sample])
        if (branches[n].left == main_row) {
          loss += share * f[n];
          if (steps.empty()) path[n] = share;  // no choice anywhere: the one path there is
        }
      for (int t : steps) {
        std::vector<std::size_t> group;
        double most = -std::numeric_limits<double>::infinity(), total = 0;
        for (std::size_t n : leaves[sample])
          if (branches[n].left == main_row || (branches[n].left == t && branches[n].possible)) {
            group.push_back(n);
            most = std::max(most, static_cast<double>(log_p.data[n]));
          }
        const auto weight = [&](std::size_t n) { return std::exp(static_cast<double>(log_p.data[n]) - most); };
        for (std::size_t n : group) total += weight(n);
        for (std::size_t n : group) {
          const double q = weight(n) / total;
          score[t][paths.row[t][n]] += share * q * (f[n] - baseline_);
          path[n] += share * q / static_cast<double>(steps.size());
        }
      }
    }
    auto surrogate = weighted_sum(path_cost(*episode, paths, true), std::span<const double>(path));
    for (std::size_t t = 0; t < score.size(); ++t)
      surrogate = add(surrogate, weighted_sum(episode->log_probability(static_cast<int>(t)), std::span<const double>(score[t])));
    return {.surrogate = surrogate, .episode = std::move(episode), .loss = loss};
  }

 private:
  int samples_;
  double baseline_;
  bool dependent_;
};

}  // namespace

HARDGRAD_ESTIMATOR(LocalExpectation, {
  .name = "local_expectation",
  .summary = "enumerates every choice in turn and keeps the others as sampled",
  .paper = "Titsias & Lazaro-Gredilla 2015, Local expectation gradients for black box variational inference",
  .target = Target::Kind::expected_loss,
  .unbiased = true,
  .evaluations = "K (1 + sum of S - 1 over the steps); S per step if independent",
  .parameters = {samples_parameter(), baseline_parameter()},
})

}  // namespace hardgrad
