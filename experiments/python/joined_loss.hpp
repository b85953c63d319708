// A loss that the parts of a batch ask for, each in a fiber of its own: Python is called once for the rows of all.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/choice/choice.hpp"
#include "experiments/python/called_loss.hpp"
#include "experiments/python/fiber.hpp"

namespace hardgrad::python {

/// Constructed and destroyed with the GIL or without it.
template <class T>
class JoinedLoss {
 public:
  /// `first`: of each part, the position of its first example in the batch. `rewards`: the losses are to be rewards
  /// (require_rewards).
  JoinedLoss(const CalledLoss<T>& loss, const std::vector<int>& first, bool rewards);
  JoinedLoss(const JoinedLoss&) = delete;

  /// In the fiber of a part: the loss of its rows, whose examples are counted within the part. The fiber is suspended until it is
  /// answered, also in the backward pass.
  Var<T> ask(std::size_t part, Fiber& fiber, Tape<T>& tape, const Choice<T>& choice, std::span<const int> example);
  /// From now on no gradient of this part flows into the weights; the caller computes that part.
  void cut(std::size_t part) { parts_[part].cut = true; }

  // While every fiber is suspended or has ended:

  /// Whether the part waits for its answer.
  bool asks(std::size_t part) const { return parts_[part].asked.has_value(); }
  /// The rows whose losses are asked for; 0 if it is derivatives, or nothing.
  std::size_t rows_asked() const;
  /// Calls Python, without the GIL. False if nothing is asked for. Its exceptions are passed on; the fibers are then to be dropped.
  bool answer();
  /// How often losses were asked for.
  std::size_t calls() const { return calls_.size(); }

 private:
  /// The losses of some rows and, if there is a cotangent, the derivatives of a call.
  struct Asked {
    typename CalledLoss<T>::Rows rows = {};
    bool differentiable = false;
    std::size_t call = 0;
    MatrixView<const T> cotangent = {};
  };
  struct Part {
    int first = 0;
    bool cut = false;
    std::optional<Asked> asked = {};
    const T* answer = nullptr;
  };
  struct Call {
    std::vector<std::size_t> begin;  ///< of each part its first row; the number of rows
    std::shared_ptr<pybind11::object> derivative;
  };
  /// Suspends the fiber until the part has its answer, which is there until its next request.
  const T* answered(std::size_t part, Fiber& fiber, const Asked& asked);
  void pull(std::size_t part, Fiber& fiber, std::size_t call, Tape<T>& tape, Var<T> loss, Var<T> weights);
  void call_losses();
  void call_slopes();

  const CalledLoss<T>& loss_;
  bool rewards_;
  std::vector<Part> parts_;
  std::vector<Call> calls_;
  std::vector<T> numbers_;  // the last answer
};

extern template class JoinedLoss<float>;
extern template class JoinedLoss<double>;

}  // namespace hardgrad::python
