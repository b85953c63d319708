// A function on a stack of its own, which can be left in the middle and entered again.
#pragma once

#include <ucontext.h>

#include <exception>
#include <functional>
#include <memory>
#include <thread>

namespace hardgrad::python {

class Fiber {
 public:
  /// The threads that enter it: the one that has made it, or several, one after another. Its body may then hold no object of a thread
  /// while it is suspended.
  enum class Threads { one, several };
  /// Starts at the first `resume`.
  explicit Fiber(std::function<void(Fiber&)> body, Threads threads = Threads::one);
  Fiber(const Fiber&) = delete;
  ~Fiber() { drop(); }

  /// Enters the body; returns when it suspends or ends, and passes its exceptions on. UsageError after its end, or in a
  /// thread that may not enter it.
  void resume();
  /// Within the body: goes back to `resume`. No exception may be caught at that time.
  void suspend();
  /// Unwinds a suspended body. In a thread that may not enter it the stack cannot be unwound, and is left.
  void drop();
  bool ended() const { return ended_; }

 private:
  struct Stack;
  struct Dropped {};
  bool may_enter() const { return threads_ == Threads::several || std::this_thread::get_id() == thread_; }
  void enter();
  static void run(unsigned low, unsigned high);

  std::function<void(Fiber&)> body_;
  std::thread::id thread_ = std::this_thread::get_id();
  std::unique_ptr<Stack> stack_;
  ucontext_t outside_{}, inside_{};
  std::exception_ptr error_;
  Threads threads_;
  bool begun_ = false, ended_ = false, dropping_ = false;
};

}  // namespace hardgrad::python
