#include "experiments/python/written_estimator.hpp"

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/relaxation/differentiated_samples.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/python/module.hpp"

namespace hardgrad::python {
namespace {

namespace py = pybind11;

/// Builds the surrogate from the function's gradient at each step of a run.
template <class T>
AtLogits answered(const py::object& function, Sampled<T>& run, const Choices<T>& choices, const AtLogits* slope) {
  const auto& layout = *choices.layout();
  const auto losses = run.losses();
  const auto& p = choices.p().value;
  auto result = choices.zeros();
  const py::gil_scoped_acquire gil;
  for (std::size_t t = 0; t < layout.steps.size(); ++t) {
    const auto& step = layout.steps[t];
    const auto N = static_cast<py::ssize_t>(layout.samples), D = static_cast<py::ssize_t>(step.columns),
               S = static_cast<py::ssize_t>(step.options);
    const py::object derivatives =
        slope ? py::object(array_of<double>(&slope->value[step.logit], {N, D, S})) : py::object(py::none());
    const auto g = function(array_of<double>(&p[step.logit], {N, D, S}),
                            array_of<std::int64_t>(run.episode().steps()[t].choice.option().data(), {N, D}),
                            array_of<double>(losses, {N}), derivatives, run.samples())
                       .template cast<Numbers<double>>();
    if (g.size() != N * D * S) throw Bug("the package's adapter lets a gradient of the wrong shape through");
    for (std::size_t c = step.choice; c < step.choice + layout.samples * step.columns; ++c)
      for (int o = 0; layout.options[c] > 1 && o < layout.options[c]; ++o) {
        const double x = g.data()[layout.logit[c] - step.logit + o];
        measurement::require_finite(x, "an entry of the gradient that the estimator returned");
        result.value[layout.logit[c] + o] = x;
      }
  }
  return result;
}

}  // namespace

std::shared_ptr<py::object> kept(py::object object) {
  return {new py::object(std::move(object)), [](py::object* held) {
            const py::gil_scoped_acquire gil;
            delete held;
          }};
}

template <class T>
Estimate<T> WrittenEstimator<T>::estimate(const Problem<T>& problem) const {
  if (derivatives_) {
    DifferentiatedSamples<T> samples(problem, samples_);
    const auto g = answered(*function_, samples.run(), samples.choices(), &samples.slope());
    const auto surrogate = samples.surrogate(g);
    const double loss = samples.run().mean_loss();
    return {.surrogate = surrogate, .episode = samples.run().release(), .loss = loss};
  }
  Sampled<T> run(problem, samples_);
  const auto choices = run.choices();
  const auto surrogate = add(run.path(), choices.surrogate(answered<T>(*function_, run, choices, nullptr)));
  const double loss = run.mean_loss();
  return {.surrogate = surrogate, .episode = run.release(), .loss = loss};
}

template class WrittenEstimator<float>;
template class WrittenEstimator<double>;

}  // namespace hardgrad::python
