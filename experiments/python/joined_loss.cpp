#include "experiments/python/joined_loss.hpp"

#include <algorithm>

#include "core/support/error.hpp"
#include "experiments/python/policies.hpp"
#include "experiments/python/written_estimator.hpp"

namespace hardgrad::python {

namespace py = pybind11;

template <class T>
JoinedLoss<T>::JoinedLoss(const CalledLoss<T>& loss, const std::vector<int>& first, bool rewards)
    : loss_(loss), rewards_(rewards) {
  for (const int position : first) parts_.push_back({.first = position});
}

template <class T>
const T* JoinedLoss<T>::answered(std::size_t part, Fiber& fiber, const Asked& asked) {
  parts_[part].asked = asked;
  fiber.suspend();
  return parts_[part].answer;
}

template <class T>
Var<T> JoinedLoss<T>::ask(std::size_t part, Fiber& fiber, Tape<T>& tape, const Choice<T>& choice,
                          std::span<const int> example) {
  loss_.require(choice);
  const bool differentiable = !choice.hard() && tape.needs_gradient(choice.weights());
  const std::size_t call = calls_.size();  // all parts ask before it is made
  const T* const values =
      answered(part, fiber, {.rows = {&choice, example, parts_[part].first}, .differentiable = differentiable});
  if (choice.hard()) return tape.constant(MatrixView<const T>{values, example.size(), 1});
  const auto loss = tape.output(example.size(), 1, {choice.weights()});
  std::copy_n(values, example.size(), tape.mutable_value(loss).data);
  tape.on_backward({loss}, [this, part, &fiber, call, loss, weights = choice.weights()](Tape<T>& tape) {
    if (tape.needs_gradient(weights)) pull(part, fiber, call, tape, loss, weights);
  });
  return loss;
}

template <class T>
void JoinedLoss<T>::pull(std::size_t part, Fiber& fiber, std::size_t call, Tape<T>& tape, Var<T> loss, Var<T> weights) {
  const auto g = tape.cotangent(loss);
  const T* from = nullptr;
  if (!parts_[part].cut) from = answered(part, fiber, {.call = call, .cotangent = g});
  tape.sink(weights).accumulate([from](std::size_t i) { return from ? from[i] : T{0}; });
}

template <class T>
std::size_t JoinedLoss<T>::rows_asked() const {
  std::size_t rows = 0;
  for (const auto& part : parts_)
    if (part.asked) rows += part.asked->rows.size();
  return rows;
}

template <class T>
bool JoinedLoss<T>::answer() {
  const auto slopes = [](const Part& part) { return part.asked && part.asked->cotangent.data; };
  // Derivatives first: every part that goes on then asks for the losses of its next run, so that one call answers all.
  if (std::any_of(parts_.begin(), parts_.end(), slopes))
    call_slopes();
  else if (std::any_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.asked.has_value(); }))
    call_losses();
  else
    return false;
  return true;
}

template <class T>
void JoinedLoss<T>::call_losses() {
  std::vector<typename CalledLoss<T>::Rows> all;
  auto& [begin, derivative] = calls_.emplace_back();
  bool differentiable = false;
  std::size_t rows = 0;
  for (const auto& part : parts_) {
    begin.push_back(rows);
    if (!part.asked) continue;
    all.push_back(part.asked->rows);
    rows += all.back().size();
    differentiable |= part.asked->differentiable;
    if (all.back().choice->hard() != all.front().choice->hard())
      throw Bug("the parts of a batch run the network in different ways");
  }
  begin.push_back(rows);
  {
    const py::gil_scoped_acquire gil;
    auto found = loss_.call(all, differentiable);
    numbers_.assign(found.value.data(), found.value.data() + rows);
    derivative = kept(std::move(found.derivative));
  }
  if (rewards_) require_rewards(MatrixView<const T>{numbers_.data(), rows, 1});
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    parts_[p].answer = numbers_.data() + begin[p];
    parts_[p].asked.reset();
  }
}

template <class T>
void JoinedLoss<T>::call_slopes() {
  const auto asks = [](const Part& part) { return part.asked && part.asked->cotangent.data; };
  const std::size_t call = std::find_if(parts_.begin(), parts_.end(), asks)->asked->call;
  const auto& begin = calls_[call].begin;
  const auto rows = static_cast<py::ssize_t>(begin.back());
  std::vector<std::size_t> asking;
  {
    const py::gil_scoped_acquire gil;
    Numbers<T> cotangent(std::vector<py::ssize_t>{rows});
    std::fill_n(cotangent.mutable_data(), rows, T{0});
    for (std::size_t p = 0; p < parts_.size(); ++p)
      if (asks(parts_[p]) && parts_[p].asked->call == call) {
        asking.push_back(p);
        const auto& g = parts_[p].asked->cotangent;
        std::copy_n(g.data, g.size(), cotangent.mutable_data() + begin[p]);
      }
    const auto found = loss_.slopes(*calls_[call].derivative, cotangent);
    numbers_.assign(found.data(), found.data() + found.size());
  }
  for (const auto p : asking) {
    parts_[p].answer = numbers_.data() + begin[p] * loss_.weights_of_row();
    parts_[p].asked.reset();
  }
}

template class JoinedLoss<float>;
template class JoinedLoss<double>;

}  // namespace hardgrad::python
