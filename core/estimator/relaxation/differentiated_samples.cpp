#include "core/estimator/relaxation/differentiated_samples.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"

namespace hardgrad {

namespace {

/// Enters the hard answers of another handler as weights.
template <class T>
class WeightsHandler final : public Handler<T> {
 public:
  WeightsHandler(Handler<T>& hard, double scale) : hard_(hard), scale_(static_cast<T>(scale)) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto hard = hard_.choose(tape, question);
    auto weights = hard.one_hot(tape, question.distribution->logits().cols());
    if (scale_ != 1) weights = affine(weights, scale_);
    return {hard.rows, Relaxed<T>{hard.picked(), tape.input(weights.value()), hard.subset_size()}};
  }

 private:
  Handler<T>& hard_;
  T scale_;
};

}  // namespace

template <class T>
DifferentiatedSamples<T>::DifferentiatedSamples(const Problem<T>& problem, int samples) : samples_(samples) {
  SampleHandler<T> hard(samples, problem.random, problem.batch.id);
  run(problem, hard, 1);
}

template <class T>
DifferentiatedSamples<T>::DifferentiatedSamples(const Problem<T>& problem, int samples, Handler<T>& hard, double scale)
    : samples_(samples) {
  run(problem, hard, scale);
}

template <class T>
void DifferentiatedSamples<T>::run(const Problem<T>& problem, Handler<T>& hard, double scale) {
  WeightsHandler<T> handler(hard, scale);
  run_ = std::make_unique<Sampled<T>>(problem, samples_, handler);
  choices_ = std::make_unique<Choices<T>>(run_->choices());
  auto total = problem.tape.constant(1, 1);
  for (const auto& cost : run_->episode().costs()) total = add(total, sum(cost.loss));
  problem.tape.backward_to_inputs(total);
  std::vector<MatrixView<const T>> slopes;
  for (const auto& step : run_->episode().steps()) slopes.push_back(problem.tape.gradient(step.choice.weights()));
  slope_ = choices_->gathered(slopes);
}

template <class T>
Var<T> DifferentiatedSamples<T>::surrogate(const AtLogits& g) {
  return add(run_->path(), choices_->surrogate(g));
}

template <class T>
double DifferentiatedSamples<T>::product(const AtLogits& a, const AtLogits& b) const {
  return total(dot(a, choices_->summed_by_logits(b))) / (static_cast<double>(layout()->samples) * samples_);
}

template class DifferentiatedSamples<float>;
template class DifferentiatedSamples<double>;

}  // namespace hardgrad
