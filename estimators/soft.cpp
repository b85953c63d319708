// soft: the deterministic network. Every choice is replaced by its expectation, and the loss is differentiated.
//
//   g = grad f(E_p[z])
//
// linear_start=N: in the first N steps of training the weights are the scores themselves, without softmax (Sukhbaatar et al.
// 2015, sec. 4.1). The network thus learns the useful memories before it has to choose.
//
// Bahdanau et al. 2015, Neural machine translation by jointly learning to align and translate, eq. 5; the deterministic
// "soft" attention of Xu et al. 2015, sec. 4.2.
// Target: the soft network's loss. Bias: none for it (biased for the expected loss; during a linear start, for both).
// Variance: none. Cost: 1 row.

#include "core/autodiff/elementwise.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::estimators::soft {
namespace {

struct Config {
  int linear_start = 0;

  void declare(Fields& field) {
    field(linear_start, "linear_start", 0, 1e9,
          "first steps of training, in which the weights are the scores, without softmax");
  }
};

/// The weights are the scores.
template <class T>
class ScoresHandler final : public Handler<T> {
 public:
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto& categories = question.categories();
    const auto logits = categories.logits();
    const auto ours = tape.constant(logits.rows(), logits.cols());
    auto mask = tape.mutable_value(ours);
    for (std::size_t choice = 0; choice < categories.options().size(); ++choice)
      for (int i = 0; i < categories.options()[choice]; ++i) mask(choice, i) = 1;
    return {fan_out(question, 1), Relaxed<T>{{}, multiply(logits, ours)}};
  }
};

template <class T>
class Soft final : public Estimator<T> {
 public:
  Soft(const Config& config, const Structure&, Key) : config_(config) {}
  void learn(const Estimate<T>&) override { ++steps_; }
  std::vector<double> state() const override {
    return config_.linear_start > 0 ? std::vector{static_cast<double>(steps_)} : std::vector<double>{};
  }
  void restore(const std::vector<double>& state) override {
    if (!state.empty()) steps_ = static_cast<int>(state[0]);
  }
  Estimate<T> estimate(const Problem<T>& problem) const override {
    if (steps_ < config_.linear_start) {
      ScoresHandler<T> handler;
      return estimate_of(problem, handler, CostWeights::equal, expected_loss<T>);
    }
    return exact_objective(this->target(), problem, problem.cap);
  }

 private:
  Config config_;
  int steps_ = 0;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "soft",
    .summary = "soft attention: the deterministic network fed with expected choices",
    .paper = "Bahdanau et al. 2015, eq. 5; Xu et al. 2015, sec. 4.2",
    .target = "soft",
    .unbiased = true,
    .biased_by = [](const Config& config) { return config.linear_start > 0; },
    .evaluations = "1",
    .parameters = declared<Config>(),
    .needs = {need::relaxable, need::no_choice},
    .closed_form = [](const Config& config) { return config.linear_start > 0 ? ClosedForm::none : ClosedForm::soft; },
};
HARDGRAD_ESTIMATOR(Soft, entry)

}  // namespace hardgrad::estimators::soft
