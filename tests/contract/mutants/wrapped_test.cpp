// Mutants that change the result of the registered estimator.
#include <doctest/doctest.h>

#include <mutex>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "tests/contract/mutants/mutant.hpp"

namespace hardgrad::testing::mutants {
namespace {

template <class T>
class Wrapped final : public Estimator<T> {
 public:
  Wrapped(const Settings& settings, const Structure& structure, Key init) : fault_(settings) {
    const auto on = [&](const char* flag) { return settings.values().contains(flag) && settings.flag(flag); };
    to_go_ = on("reward_to_go");
    normalised_ = on("normalise");
    const auto& entry = Estimators::instance().at(settings.text("of"));
    if constexpr (std::is_same_v<T, float>)
      right_ = entry.make_float(settings, structure, init);
    else
      right_ = entry.make_double(settings, structure, init);
    this->own_ = std::move(right_->own_parameters());  // their addresses stay the same
    if (fault_("sign of the first own parameter")) this->own_.begin()->value.flat(0) *= -1;
  }
  bool exchangeable() const override { return right_->exchangeable(); }
  int copies() const override { return right_->copies(); }
  int inner_copies() const override { return right_->inner_copies(); }
  std::vector<double> state() const override { return right_->state(); }
  void restore(const std::vector<double>& state) override { right_->restore(state); }
  void learn(const Estimate<T>& estimate) override { right_->learn(estimate); }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    std::call_once(aimed_, [&] { right_->aim(this->target()); });
    auto estimate = right_->draw(problem);
    auto& surrogate = estimate.surrogate;
    auto& run = *estimate.episode;
    if (fault_("scale")) surrogate = affine(surrogate, T{1.1});
    if (fault_("weight of the score") || (normalised_ && fault_("weight of the normalised score")))
      surrogate = subtract(affine(surrogate, T{2}), path(run));
    if (fault_("sign of the score")) surrogate = subtract(affine(path(run), T{2}), surrogate);
    if (fault_("constant in the signal")) surrogate = add(surrogate, score(run, 0, 0));
    if (to_go_ && fault_("constant in later columns' reward to go")) surrogate = add(surrogate, score(run, 1, 0));
    if (to_go_ && fault_("constant in later examples' reward to go")) surrogate = add(surrogate, score(run, 0, 1));
    if (fault_("sign of the sleep phase"))
      for (int t = 0; t < static_cast<int>(estimate.others.back()->steps().size()); ++t)
        surrogate = add(surrogate, sum(estimate.others.back()->log_probability(t), 2.0 / problem.batch.examples()));
    if (fault_("reported loss")) estimate.loss += 1;
    if (fault_("sign of the first average")) estimate.observed.front() *= -1;
    if (fault_("scale of the last average")) estimate.observed.back() *= 2;
    if (!estimate.own_loss) return estimate;
    if (fault_("sign of the own loss")) estimate.own_loss = affine(estimate.own_loss, T{-1});
    if (fault_("scale of the own loss")) estimate.own_loss = affine(estimate.own_loss, T{4});
    if (fault_("slope of the last own parameter"))
      estimate.own_loss = add(estimate.own_loss, sum(problem.tape.parameter(*std::prev(this->own_.end())), 0.1));
    return estimate;
  }

 private:
  /// The path term of samples with equal weights.
  static Var<T> path(const Episode<T>& run) {
    auto total = run.tape().constant(1, 1);
    for (const auto& cost : run.costs()) total = add(total, sum(cost.loss, 1.0 / static_cast<double>(cost.rows->size())));
    return total;
  }
  /// The mean of log p(z), for columns and examples from these on: a term whose gradient has the mean 0.
  static Var<T> score(Episode<T>& run, std::size_t from_column, int from_example) {
    auto total = run.tape().constant(1, 1);
    for (int t = 0; t < static_cast<int>(run.steps().size()); ++t) {
      const auto log_p = run.log_probability_by_column(t);
      const auto& example = run.steps()[t].choice.rows->example;
      std::vector<double> weight(log_p.rows() * log_p.cols());
      for (std::size_t i = 0; i < weight.size(); ++i)
        if (i % log_p.cols() >= from_column && example[i / log_p.cols()] >= from_example)
          weight[i] = 1 / static_cast<double>(log_p.rows());
      total = add(total, weighted_sum(log_p, std::span<const double>(weight)));
    }
    return total;
  }

  Fault fault_;
  bool to_go_, normalised_;
  mutable std::once_flag aimed_;
  std::unique_ptr<Estimator<T>> right_;
};

}  // namespace

TEST_CASE("estimators whose result is changed are rejected") {
  check_mutants<Wrapped>("implicit_mle", {"sign of the score"});
  check_mutants<Wrapped>("local_disarm", {"scale", "constant in the signal"});
  check_mutants<Wrapped>("optimal_baseline", {"weight of the score"});
  check_mutants<Wrapped>("muprop", {"constant in the signal", "constant in later columns' reward to go",
                                    "constant in later examples' reward to go", "sign of the own loss"});
  check_mutants<Wrapped>("wake_sleep", {"sign of the sleep phase"});
  check_mutants<Wrapped>("nvil", {"weight of the normalised score", "sign of the first average", "scale of the last average",
                                  "sign of the own loss", "slope of the last own parameter"});
  check_mutants<Wrapped>("rodeo", {"sign of the first own parameter"});
  check_mutants<Wrapped>("rebar", {"sign of the first average", "slope of the last own parameter"});
  check_mutants<Wrapped>("relax", {"scale of the own loss"});
  check_mutants<Wrapped>("double_cv", {"sign of the own loss"});
  check_mutants<Wrapped>("local_expectation", {"reported loss"});
  check_accepted("optimal_baseline_mutant");
}

}  // namespace hardgrad::testing::mutants
