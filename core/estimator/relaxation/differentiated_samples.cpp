#include "core/estimator/relaxation/differentiated_samples.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/relaxed.hpp"

namespace hardgrad {

template <class T>
DifferentiatedSamples<T>::DifferentiatedSamples(const Problem<T>& problem, int samples) : samples_(samples) {
  RelaxedHandler<T> handler(samples, problem.random, problem.batch.id, [](const Relaxing<T>& asked) {
    auto option = asked.draw();
    auto hard = asked.tape.constant(asked.size(), asked.width());
    for (std::size_t c = 0; c < option.size(); ++c) asked.tape.mutable_value(hard)(c, option[c]) = 1;
    return Relaxed<T>{std::move(option), asked.tape.input(hard.value())};
  });
  run_ = std::make_unique<Sampled<T>>(problem, samples, handler);
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
  return total(dot(a, choices_->met(b))) / (static_cast<double>(layout()->samples) * samples_);
}

template class DifferentiatedSamples<float>;
template class DifferentiatedSamples<double>;

}  // namespace hardgrad
