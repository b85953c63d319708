// The tape: first-order reverse-mode automatic differentiation over matrices.
//
// Every value is a matrix [rows, cols] in memory of the tape. An operation allocates its output, fills it, and adds a closure
// that computes the inputs' cotangents from the output's. The tape is an explicit argument everywhere and belongs to one task
// at a time. `clear` keeps its memory for the next gradient; `rewind` also keeps values that all runs over the same data share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/autodiff/parameter.hpp"
#include "core/support/arena.hpp"
#include "core/support/array.hpp"

namespace hardgrad {

template <class T>
class Tape;

/// A handle to a matrix on a tape. Copies refer to the same matrix.
template <class T>
struct Var {
  Tape<T>* tape = nullptr;
  std::uint32_t id = 0;

  explicit operator bool() const { return tape != nullptr; }
  MatrixView<const T> value() const;
  std::size_t rows() const { return value().rows; }
  std::size_t cols() const { return value().cols; }
  /// The entry of a [1, 1] matrix.
  T item() const { return value().data[0]; }
};

/// Destination of an input's cotangent in a closure. The first writer stores, later ones
/// add: buffers are never cleared beforehand.
template <class T>
struct Sink {
  MatrixView<T> to;
  bool first = false;

  /// to[i] (+)= f(i) for every flat index i.
  template <class F>
  void accumulate(F&& f) const {
    const std::size_t n = to.size();
    T* out = to.data;
    if (first)
      for (std::size_t i = 0; i < n; ++i) out[i] = f(i);
    else
      for (std::size_t i = 0; i < n; ++i) out[i] += f(i);
  }
  /// For scatters: an initialised matrix (zeros before the first write).
  MatrixView<T> scattered() const {
    if (first) std::fill_n(to.data, to.size(), T{0});
    return to;
  }
  /// The beta of a matrix product that accumulates.
  T beta() const { return first ? T{0} : T{1}; }
};

template <class T>
class Tape {
 public:
  Tape() = default;
  explicit Tape(std::function<void()> pause) : pause_(std::move(pause)) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Called before each large operation, forward and backward. It may throw to stop the work; then call `clear` or `rewind`.
  void pause_for(std::function<void()> pause) { pause_ = std::move(pause); }
  /// Deletes all values and closures; keeps the memory.
  void clear();
  /// As `clear`, but keeps the values of `shared`, for another gradient with the same parameters.
  void rewind();
  /// A value that `owner` computes from its data alone: made on the first call, found by `same(const X&)` in later runs.
  /// `rewind` keeps it unless an operation with a gradient was on the tape before it.
  template <class X, class Same, class Make>
  const X& shared(const void* owner, Same same, Make make) {
    for (const auto& [who, what] : shared_)
      if (who == owner)
        if (const auto& x = *static_cast<const X*>(what.get()); same(x)) return x;
    const bool first = closures_.size() == mark_.closures;
    shared_.emplace_back(owner, std::make_shared<const X>(make()));
    for (auto& node : nodes_) node.writable = false;  // other runs read it, too
    if (first) mark_ = {arena_.mark(), nodes_.size(), closures_.size(), watched_.size(), shared_.size()};
    return *static_cast<const X*>(shared_.back().second.get());
  }

  // Leaves
  Var<T> constant(std::size_t rows, std::size_t cols, T fill = T{0});
  Var<T> constant(MatrixView<const T> values);
  /// The parameter itself, not a copy: it must outlive its use by the tape and must not change meanwhile.
  Var<T> parameter(const Parameter<T>& parameter);
  /// A copy that receives a gradient: for checks.
  Var<T> input(MatrixView<const T> values);
  /// One to be filled by `mutable_value`.
  Var<T> input(std::size_t rows, std::size_t cols);
  /// From now on parameters are constants, and the logits of every choice receive gradients instead. This is for measurements
  /// at the logits: nothing below a choice is back-propagated.
  void differentiate_logits_only() { logits_only_ = true; }
  bool logits_only() const { return logits_only_ && !fixed_; }
  /// While it lives, new parameters on the tape are constants: those of a network that is not differentiated.
  class FixedParameters {
   public:
    explicit FixedParameters(Tape& tape) : tape_(tape), before_(std::exchange(tape.fixed_, true)) {}
    FixedParameters(const FixedParameters&) = delete;
    FixedParameters& operator=(const FixedParameters&) = delete;
    ~FixedParameters() { tape_.fixed_ = before_; }

   private:
    Tape& tape_;
    bool before_;
  };
  /// From here on x receives a gradient, whatever it was made from.
  void watch(Var<T> x) { nodes_[x.id].made_from |= parameters; }
  /// The same value, detached from its inputs.
  Var<T> detach(Var<T> x);
  /// The same numbers in the same memory as a matrix of this shape, with x's leaves. Its operation passes on the cotangent.
  Var<T> view(Var<T> x, std::size_t rows, std::size_t cols);

  // For operations
  /// A new uninitialised output; `inputs` decide whether it needs a gradient.
  Var<T> output(std::size_t rows, std::size_t cols, std::span<const Var<T>> inputs);
  Var<T> output(std::size_t rows, std::size_t cols, std::initializer_list<Var<T>> inputs) {
    return output(rows, cols, std::span(inputs.begin(), inputs.size()));
  }
  /// The same in the memory of x, for operations that read x and overwrite it: reading x's value later is a Bug. If x is a
  /// leaf, or shares its memory, this is new memory with a copy of x.
  Var<T> output_over(Var<T> x, std::initializer_list<Var<T>> inputs);
  MatrixView<T> mutable_value(Var<T> x) { return nodes_[x.id].value; }
  MatrixView<const T> value(Var<T> x) const {
    const auto& node = nodes_[x.id];
    if (node.overwritten) [[unlikely]]
      throw Bug("a value was read after another operation overwrote it");
    return node.value;
  }
  /// In a closure: true if this backward pass needs a gradient of x.
  bool needs_gradient(Var<T> x) const { return nodes_[x.id].made_from & wanted_; }
  /// Arena memory that lives as long as the tape's values.
  template <class U>
  std::span<U> scratch(std::size_t count) {
    return {arena_.allocate<U>(count), count};
  }
  template <class U>
  std::span<const U> keep(std::span<const U> values) {
    auto copy = scratch<U>(values.size());
    std::copy(values.begin(), values.end(), copy.begin());
    return copy;
  }
  std::span<const int> keep(const std::vector<int>& values) { return keep(std::span<const int>(values)); }
  /// Runs `f(tape)` in the backward pass if any of the outputs received a cotangent. `f` must be trivially
  /// destructible (capture Vars, numbers and spans from `keep`). Skipped if no output needs a gradient.
  template <class F>
  void on_backward(std::initializer_list<Var<T>> outputs, F f) {
    bool needed = false;
    for (auto out : outputs) needed |= needs_gradient(out);
    if (!needed) return;
    auto* stored = new (arena_.allocate<F>(1)) F(std::move(f));
    const auto first = static_cast<std::uint32_t>(watched_.size());
    for (auto out : outputs) watched_.push_back(out.id);
    closures_.push_back(
        {[](void* p, Tape& tape) { (*static_cast<F*>(p))(tape); }, stored, first, static_cast<std::uint32_t>(watched_.size())});
  }
  /// In a closure: the cotangent of an output (zeros if it received none).
  MatrixView<const T> cotangent(Var<T> x);
  /// In a closure: where to put the cotangent of an input that needs one.
  Sink<T> sink(Var<T> x);
  /// In a closure: counts a wrong hint of its output's cotangent, after which the work was repeated.
  void count_missed_hint() { ++missed_hints_; }
  /// At the end of a closure: passes the cotangent of its output y to its input x unchanged.
  void pass_on(Var<T> y, Var<T> x);
  /// The same after change(cotangent), in place where the cotangent of y is not read again.
  template <class F>
  void pass_on(Var<T> y, Var<T> x, F change) {
    if (!needs_gradient(x)) return;
    auto& from = nodes_[y.id];
    if (releasing_) {
      change(MatrixView<T>{from.cotangent, from.value.rows, from.value.cols});
      return pass_on(y, x);
    }
    const MatrixView<T> changed{arena_.allocate<T>(from.value.size()), from.value.rows, from.value.cols};
    std::copy_n(from.cotangent, changed.size(), changed.data);
    change(changed);
    sink(x).accumulate([&](std::size_t i) { return changed.data[i]; });
  }

  // Results
  /// Back-propagates from a [1, 1] matrix.
  void backward(Var<T> scalar, T seed = T{1});
  /// Back-propagates a given cotangent of any matrix: for checks.
  void backward(Var<T> x, MatrixView<const T> cotangent);
  /// As `backward_to_leaves`, but towards inputs only: values made of parameters alone are skipped, so a product
  /// back-propagates to its rows but not to its weights.
  void backward_to_inputs(Var<T> scalar);
  /// As `backward`, but the memory of a cotangent is reused once it has been propagated. Afterwards only the gradients of
  /// leaves (parameters, inputs) can be read.
  void backward_to_leaves(Var<T> scalar);
  /// The same towards parameters only. The set's gradient is written to `into`
  /// [set.size()], in the set's order, and is not kept on the tape.
  void backward_to_leaves(Var<T> scalar, const ParameterSet<T>& set, std::span<T> into);
  /// After `backward`: d scalar / d x; zeros if the scalar does not depend on x.
  MatrixView<const T> gradient(Var<T> x) { return cotangent(x); }
  /// After `backward`: adds `scale` times the set's gradient to `into` [set.size()], in the set's order.
  template <class U>
  void add_gradient(const ParameterSet<T>& set, std::span<U> into, U scale = U{1});

  /// Number of calls of count_missed_hint since the last `clear` or `rewind`.
  std::size_t missed_hints() const { return missed_hints_; }

  const Arena& arena() const { return arena_; }

 private:
  // Kinds of leaves that receive gradients.
  enum Leaves : std::uint8_t { none = 0, parameters = 1, inputs = 2, all = 3 };
  struct Node {
    MatrixView<T> value;
    T* cotangent = nullptr;
    std::uint8_t made_from = none;  // of Leaves
    bool received = false;
    bool writable = false;     // made by an operation, and its memory is not shared
    bool overwritten = false;  // by output_over
    bool lent = false;         // the cotangent's memory belongs to another owner
  };
  struct Closure {
    void (*run)(void*, Tape&);
    void* data;
    std::uint32_t first, last;  // indices of its outputs in watched_
  };
  // The state to which `rewind` returns.
  struct Mark {
    Arena::Mark arena{};
    std::size_t nodes = 0, closures = 0, watched = 0, shared = 0;
  };
  Var<T> leaf(MatrixView<T> value, std::uint8_t made_from);
  std::uint8_t leaves_of(std::span<const Var<T>> made_of) const;
  /// The parameter's node; null if it is not on the tape.
  Node* node_of(const Parameter<T>& parameter);
  /// Memory for a cotangent of x: a released one of the same size, or new.
  T* cotangent_memory(std::size_t size);
  void release(Node& node);
  void begin(Var<T> scalar);
  /// Called before an operation on `size` entries.
  void pause(std::size_t size) const {
    if (size >= large && pause_) pause_();
  }
  void run_closures(bool releasing, Leaves wanted);

  static constexpr std::size_t large = 1 << 16;  // entries: about 10 microseconds

  Arena arena_;
  std::function<void()> pause_;
  std::vector<Node> nodes_;
  std::vector<Closure> closures_;
  std::vector<std::uint32_t> watched_;
  std::vector<std::pair<std::size_t, std::vector<T*>>> released_;  // by size; few sizes
  std::vector<std::pair<const Parameter<T>*, std::uint32_t>> parameters_;
  std::vector<std::pair<const void*, std::shared_ptr<const void>>> shared_;
  Mark mark_;
  std::size_t missed_hints_ = 0;
  bool logits_only_ = false, fixed_ = false, releasing_ = false;
  std::uint8_t wanted_ = all;  // in a backward pass: kinds of Leaves
};

template <class T>
MatrixView<const T> Var<T>::value() const {
  return tape->value(*this);
}

extern template class Tape<float>;
extern template class Tape<double>;

/// into [set.size()] = d scalar / d parameters, in the set's order. Afterwards only
/// gradients of parameters outside the set can be read from the tape.
template <class T, class U>
void differentiate(Var<T> scalar, const ParameterSet<T>& set, std::vector<U>& into) {
  if constexpr (std::is_same_v<T, U>) {
    scalar.tape->backward_to_leaves(scalar, set, into);
  } else {
    scalar.tape->backward_to_leaves(scalar);
    std::fill(into.begin(), into.end(), U{0});
    scalar.tape->add_gradient(set, std::span<U>(into));
  }
}

/// [rows, cols], not initialised; it lives as long as the tape's values.
template <class T>
MatrixView<T> scratch_matrix(Tape<T>& tape, std::size_t rows, std::size_t cols) {
  return {tape.template scratch<T>(rows * cols).data(), rows, cols};
}

}  // namespace hardgrad
