#include "experiments/python/called_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/measurement/finite.hpp"
#include "experiments/python/arrays.hpp"
#include "experiments/python/own_loss.hpp"

namespace hardgrad::python {

namespace py = pybind11;

void refuse_weights(const std::string& estimator) {
  throw UsageError(
      fmt::format("{} needs a loss of weights over the options, but this one takes options: pass a function of "
                  "weights [rows, columns, options] with takes=\"weights\", or a table",
                  estimator));
}

template <class T>
Var<T> CalledLoss<T>::operator()(Tape<T>& tape, const Choice<T>& choice, std::span<const int> example) {
  if (!choice.hard() && !takes_weights_) refuse_weights(estimator_);
  const py::gil_scoped_acquire gil;
  const auto rows = static_cast<py::ssize_t>(choice.rows->size());
  const auto chosen = choice.hard()
                          ? py::object(array_of<std::int64_t>(choice.picked(), shape_of_options(rows, columns_, picks_)))
                          : py::object(array_of<T>(choice.weights().value().data, {rows, columns_, options_}));
  const bool differentiable = !choice.hard() && tape.needs_gradient(choice.weights());
  const auto answer = loss_(chosen, array_of<std::int64_t>(example.data(), {rows}), differentiable).template cast<py::tuple>();
  const auto losses = answer[0].template cast<Numbers<T>>();
  if (losses.size() != rows) throw Bug("the package's adapter lets losses of the wrong shape through");
  for (py::ssize_t r = 0; r < rows; ++r)
    if (!std::isfinite(losses.data()[r]))
      throw measurement::NotFinite(fmt::format("the loss of row {} is {}, not a finite number", r, losses.data()[r]));
  const MatrixView<const T> values{losses.data(), choice.rows->size(), 1};
  if (choice.hard()) return tape.constant(values);

  const auto loss = tape.output(values.rows, 1, {choice.weights()});
  std::copy_n(values.data, values.rows, tape.mutable_value(loss).data);
  auto& runs = runs_[&tape];
  while (!runs.empty() && runs.back().first >= loss.id) runs.pop_back();  // left from before the tape was rewound
  runs.emplace_back(loss.id, answer[1]);
  tape.on_backward({loss}, [this, loss, weights = choice.weights()](Tape<T>& tape) {
    if (tape.needs_gradient(weights)) pull(tape, loss, weights);
  });
  return loss;
}

template <class T>
void CalledLoss<T>::pull(Tape<T>& tape, Var<T> loss, Var<T> weights) const {
  const auto g = tape.cotangent(loss);
  const auto sink = tape.sink(weights);
  if (cut_) return sink.accumulate([](std::size_t) { return T{0}; });
  const py::gil_scoped_acquire gil;
  const auto& runs = runs_.at(&tape);
  const auto& derivative =
      std::lower_bound(runs.begin(), runs.end(), loss.id, [](const auto& run, auto id) { return run.first < id; })->second;
  if (derivative.is_none())
    throw UsageError(fmt::format(
        "{} differentiates the loss in the weights: return (losses, derivatives [rows, columns, options])", estimator_));
  const auto slopes = derivative(array_of<T>(g.data, {static_cast<py::ssize_t>(g.rows)})).template cast<Numbers<T>>();
  if (static_cast<std::size_t>(slopes.size()) != sink.to.size())
    throw Bug("the package's adapter lets derivatives of the wrong shape through");
  sink.accumulate([from = slopes.data()](std::size_t i) { return from[i]; });
}

template class CalledLoss<float>;
template class CalledLoss<double>;

}  // namespace hardgrad::python
