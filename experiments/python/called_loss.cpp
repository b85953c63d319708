#include "experiments/python/called_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/support/error.hpp"
#include "experiments/measurement/finite.hpp"
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
void CalledLoss<T>::require(const Choice<T>& choice) const {
  if (!choice.hard() && !takes_weights_) refuse_weights(estimator_);
}

template <class T>
auto CalledLoss<T>::call(std::span<const Rows> all, bool differentiable) const -> Losses {
  py::ssize_t count = 0;
  for (const auto& rows : all) count += static_cast<py::ssize_t>(rows.size());
  py::array_t<std::int64_t> example(std::vector<py::ssize_t>{count});  // by its shape: NumPy 2 has other strides by a count
  auto* to = example.mutable_data();
  for (const auto& rows : all)
    to = std::transform(rows.example.begin(), rows.example.end(), to, [&](int e) { return rows.first + e; });
  const auto joined = [&]<class X>(py::array_t<X> array, auto numbers) -> py::object {
    X* place = array.mutable_data();
    for (const auto& rows : all) {
      const auto some = numbers(*rows.choice);
      place = std::copy(some.begin(), some.end(), place);
    }
    return array;
  };
  const auto chosen =
      all.front().choice->hard()
          ? joined(py::array_t<std::int64_t>(shape_of_options(count, columns_, subset_size_)),
                   [](const Choice<T>& choice) { return std::span<const int>(choice.picked()); })
          : joined(py::array_t<T>(std::vector<py::ssize_t>{count, columns_, options_}), [](const Choice<T>& choice) {
              const auto weights = choice.weights().value();
              return std::span<const T>(weights.data, weights.size());
            });
  const auto answer = loss_(chosen, example, differentiable).template cast<py::tuple>();
  auto losses = answer[0].template cast<Numbers<T>>();
  if (losses.size() != count) throw Bug("the package's adapter lets losses of the wrong shape through");
  for (py::ssize_t r = 0; r < count; ++r)
    if (!std::isfinite(losses.data()[r]))
      throw measurement::NotFinite(fmt::format("the loss of row {} is {}, not a finite number", r, losses.data()[r]));
  return {std::move(losses), answer[1]};
}

template <class T>
Numbers<T> CalledLoss<T>::slopes(const py::object& derivative, const Numbers<T>& cotangent) const {
  if (derivative.is_none())
    throw UsageError(fmt::format(
        "{} differentiates the loss in the weights: return (losses, derivatives [rows, columns, options])", estimator_));
  auto slopes = derivative(cotangent).template cast<Numbers<T>>();
  if (static_cast<std::size_t>(slopes.size()) != static_cast<std::size_t>(cotangent.size()) * weights_of_row())
    throw Bug("the package's adapter lets derivatives of the wrong shape through");
  return slopes;
}

template <class T>
Var<T> CalledLoss<T>::operator()(Tape<T>& tape, const Choice<T>& choice, std::span<const int> example) {
  require(choice);
  const Rows rows{&choice, example};
  const bool differentiable = !choice.hard() && tape.needs_gradient(choice.weights());
  const py::gil_scoped_acquire gil;
  const auto [losses, derivative] = call({&rows, 1}, differentiable);
  const MatrixView<const T> values{losses.data(), rows.size(), 1};
  if (choice.hard()) return tape.constant(values);

  const auto loss = tape.output(values.rows, 1, {choice.weights()});
  std::copy_n(values.data, values.rows, tape.mutable_value(loss).data);
  auto& runs = runs_[&tape];
  while (!runs.empty() && runs.back().first >= loss.id) runs.pop_back();  // left from before the tape was rewound
  runs.emplace_back(loss.id, derivative);
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
  const auto found = slopes(derivative, array_of<T>(g.data, {static_cast<py::ssize_t>(g.rows)}));
  sink.accumulate([from = found.data()](std::size_t i) { return from[i]; });
}

template class CalledLoss<float>;
template class CalledLoss<double>;

}  // namespace hardgrad::python
