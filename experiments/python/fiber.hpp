// A function on a stack of its own, which can be left in the middle and entered again, by one thread.
#pragma once

#include <ucontext.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>

namespace hardgrad::python {

class Fiber {
 public:
  /// Starts at the first `resume`.
  explicit Fiber(std::function<void(Fiber&)> body);
  Fiber(const Fiber&) = delete;
  ~Fiber() { drop(); }

  /// Enters the body; returns when it suspends or ends, and passes its exceptions on. UsageError in another thread, or
  /// after its end.
  void resume();
  /// Within the body: goes back to `resume`. No exception may be caught at that time.
  void suspend();
  /// Unwinds a suspended body. In another thread the stack cannot be unwound, and is left.
  void drop();

 private:
  struct Stack;
  struct Dropped {};
  void enter();
  static void run(unsigned low, unsigned high);

  std::function<void(Fiber&)> body_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::unique_ptr<Stack> stack_;
  ucontext_t outside_{}, inside_{};
  std::exception_ptr error_;
  bool begun_ = false, ended_ = false, dropping_ = false;
};

}  // namespace hardgrad::python
