#include "core/autodiff/tape.hpp"

#include <algorithm>

namespace hardgrad {

template <class T>
void Tape<T>::clear() {
  mark_ = {};
  rewind();
}

template <class T>
void Tape<T>::rewind() {
  arena_.rewind(mark_.arena);
  nodes_.resize(mark_.nodes);
  closures_.resize(mark_.closures);
  watched_.resize(mark_.watched);
  shared_.resize(mark_.shared);
  while (!parameters_.empty() && parameters_.back().second >= mark_.nodes) parameters_.pop_back();
  missed_hints_ = 0;
  wanted_ = all;
  for (auto& [size, memory] : released_) memory.clear();
  for (auto& node : nodes_) {  // cotangents lie behind the mark
    node.cotangent = nullptr;
    node.received = node.lent = false;
  }
}

template <class T>
T* Tape<T>::cotangent_memory(std::size_t size) {
  for (auto& [of_size, memory] : released_)
    if (of_size == size && !memory.empty()) {
      T* found = memory.back();
      memory.pop_back();
      arena_.resume(found, size);
      return found;
    }
  return arena_.allocate<T>(size);
}

template <class T>
void Tape<T>::release(Node& node) {
  if (!node.cotangent) return;
  const auto size = node.value.size();
  auto position = std::find_if(released_.begin(), released_.end(), [&](const auto& r) { return r.first == size; });
  if (position == released_.end()) position = released_.insert(position, {size, {}});
  arena_.suspend(node.cotangent, size);
  position->second.push_back(std::exchange(node.cotangent, nullptr));
}

template <class T>
Var<T> Tape<T>::leaf(MatrixView<T> value, std::uint8_t made_from) {
  nodes_.push_back({.value = value, .made_from = made_from});
  return {this, static_cast<std::uint32_t>(nodes_.size() - 1)};
}

template <class T>
Var<T> Tape<T>::constant(std::size_t rows, std::size_t cols, T fill) {
  MatrixView<T> value{arena_.allocate<T>(rows * cols), rows, cols};
  std::fill_n(value.data, value.size(), fill);
  return leaf(value, none);
}

template <class T>
Var<T> Tape<T>::constant(MatrixView<const T> values) {
  MatrixView<T> value{arena_.allocate<T>(values.size()), values.rows, values.cols};
  std::copy_n(values.data, values.size(), value.data);
  return leaf(value, none);
}

template <class T>
Var<T> Tape<T>::input(MatrixView<const T> values) {
  auto x = input(values.rows, values.cols);
  std::copy_n(values.data, values.size(), mutable_value(x).data);
  return x;
}

template <class T>
Var<T> Tape<T>::input(std::size_t rows, std::size_t cols) {
  return leaf({arena_.allocate<T>(rows * cols), rows, cols}, inputs);
}

template <class T>
Var<T> Tape<T>::parameter(const Parameter<T>& parameter) {
  for (const auto& [known, id] : parameters_)
    if (known == &parameter) return {this, id};
  // The tape never writes to a leaf; the cast avoids a second pointer type in Node.
  auto x = leaf({const_cast<T*>(parameter.value.data()), parameter.rows(), parameter.cols()},
                logits_only_ || fixed_ ? none : parameters);
  parameters_.emplace_back(&parameter, x.id);
  return x;
}

template <class T>
Var<T> Tape<T>::detach(Var<T> x) {
  value(x);  // a Bug if x was overwritten
  nodes_[x.id].writable = false;
  return leaf(nodes_[x.id].value, none);
}

template <class T>
Var<T> Tape<T>::view(Var<T> x, std::size_t rows, std::size_t cols) {
  value(x);  // a Bug if x was overwritten
  auto& node = nodes_[x.id];
  if (rows * cols != node.value.size()) throw Bug("a view of another size");
  node.writable = false;
  return leaf({node.value.data, rows, cols}, node.made_from);
}

template <class T>
std::uint8_t Tape<T>::leaves_of(std::span<const Var<T>> made_of) const {
  std::uint8_t leaves = none;
  for (auto x : made_of)
    if (x) leaves |= nodes_[x.id].made_from;
  return leaves;
}

template <class T>
Var<T> Tape<T>::output(std::size_t rows, std::size_t cols, std::span<const Var<T>> inputs) {
  pause(rows * cols);
  auto y = leaf({arena_.allocate<T>(rows * cols), rows, cols}, leaves_of(inputs));
  nodes_[y.id].writable = true;
  return y;
}

template <class T>
Var<T> Tape<T>::output_over(Var<T> x, std::initializer_list<Var<T>> inputs) {
  const auto from = value(x);
  if (!nodes_[x.id].writable) {
    auto y = output(from.rows, from.cols, inputs);
    std::copy_n(from.data, from.size(), mutable_value(y).data);
    return y;
  }
  auto y = leaf(nodes_[x.id].value, leaves_of({inputs.begin(), inputs.size()}));
  nodes_[x.id].overwritten = nodes_[y.id].writable = true;
  return y;
}

template <class T>
MatrixView<const T> Tape<T>::cotangent(Var<T> x) {
  auto& node = nodes_[x.id];
  if (node.received && !node.cotangent) throw Bug("this gradient was not kept: use backward instead of backward_to_leaves");
  if (!node.cotangent) node.cotangent = cotangent_memory(node.value.size());
  if (!node.received) {
    std::fill_n(node.cotangent, node.value.size(), T{0});
    node.received = true;
  }
  return {node.cotangent, node.value.rows, node.value.cols};
}

template <class T>
Sink<T> Tape<T>::sink(Var<T> x) {
  auto& node = nodes_[x.id];
  if (!node.cotangent) node.cotangent = cotangent_memory(node.value.size());
  const bool first = !std::exchange(node.received, true);
  return {{node.cotangent, node.value.rows, node.value.cols}, first};
}

template <class T>
void Tape<T>::pass_on(Var<T> y, Var<T> x) {
  if (!needs_gradient(x)) return;
  auto &from = nodes_[y.id], &to = nodes_[x.id];
  if (!releasing_ || to.received || to.lent) {
    sink(x).accumulate([g = from.cotangent](std::size_t i) { return g[i]; });
    return;
  }
  release(to);
  to.cotangent = std::exchange(from.cotangent, nullptr);  // y's cotangent is not read again
  to.received = true;
}

template <class T>
void Tape<T>::backward(Var<T> scalar, T seed) {
  if (scalar.value().size() != 1) throw Bug("backward without a cotangent needs a [1, 1] matrix");
  backward(scalar, MatrixView<const T>{&seed, 1, 1});
}

template <class T>
void Tape<T>::backward(Var<T> x, MatrixView<const T> cotangent) {
  for (auto& node : nodes_) node.received = false;
  sink(x).accumulate([&](std::size_t i) { return cotangent.data[i]; });
  run_closures(false, all);
}

template <class T>
void Tape<T>::begin(Var<T> scalar) {
  if (scalar.value().size() != 1) throw Bug("backward without a cotangent needs a [1, 1] matrix");
  for (auto& node : nodes_) node.received = false;
  sink(scalar).accumulate([](std::size_t) { return T{1}; });
}

template <class T>
void Tape<T>::backward_to_inputs(Var<T> scalar) {
  begin(scalar);
  run_closures(true, inputs);
}

template <class T>
void Tape<T>::backward_to_leaves(Var<T> scalar) {
  begin(scalar);
  run_closures(true, all);
}

template <class T>
auto Tape<T>::node_of(const Parameter<T>& parameter) -> Node* {
  for (const auto& [known, id] : parameters_)
    if (known == &parameter) return &nodes_[id];
  return nullptr;
}

template <class T>
void Tape<T>::backward_to_leaves(Var<T> scalar, const ParameterSet<T>& set, std::span<T> into) {
  if (into.size() != set.size()) throw Bug("gradient buffer of the wrong size");
  for (const auto& parameter : set)
    if (Node* node = node_of(parameter)) {
      node->cotangent = into.data() + parameter.offset;
      node->lent = true;
    }
  begin(scalar);
  run_closures(true, parameters);
  for (const auto& parameter : set) {
    Node* node = node_of(parameter);
    if (!node || !node->received) std::fill_n(into.data() + parameter.offset, parameter.value.size(), T{0});
    if (!node) continue;
    node->cotangent = nullptr;
    node->lent = false;
  }
}

template <class T>
void Tape<T>::run_closures(bool releasing, Leaves wanted) {
  releasing_ = releasing;
  wanted_ = wanted;
  for (auto closure = closures_.rbegin(); closure != closures_.rend(); ++closure) {
    bool received = false;
    for (auto i = closure->first; i < closure->last; ++i) received |= nodes_[watched_[i]].received;
    if (received) {
      pause(nodes_[watched_[closure->first]].value.size());
      closure->run(closure->data, *this);
    }
    if (releasing)
      for (auto i = closure->first; i < closure->last; ++i) release(nodes_[watched_[i]]);
  }
  wanted_ = all;
}

template <class T>
template <class U>
void Tape<T>::add_gradient(const ParameterSet<T>& set, std::span<U> into, U scale) {
  if (into.size() != set.size()) throw Bug("gradient buffer of the wrong size");
  for (const auto& parameter : set) {
    const Node* node = node_of(parameter);
    if (!node || !node->received) continue;
    if (!node->cotangent) throw Bug("this gradient was written to the caller's buffer");
    U* out = into.data() + parameter.offset;
    for (std::size_t i = 0; i < node->value.size(); ++i) out[i] += scale * static_cast<U>(node->cotangent[i]);
  }
}

template class Tape<float>;
template class Tape<double>;
template void Tape<float>::add_gradient(const ParameterSet<float>&, std::span<float>, float);
template void Tape<float>::add_gradient(const ParameterSet<float>&, std::span<double>, double);
template void Tape<double>::add_gradient(const ParameterSet<double>&, std::span<double>, double);

}  // namespace hardgrad
