// A mutex that a forked process finds free.
#pragma once

#include <unistd.h>

#include <atomic>

namespace hardgrad::python {

/// The process that `fork` makes has one thread. What another thread of its parent held there would be locked for ever, so that the
/// first use in a process takes a new mutex.
template <class Mutex>
class ForkSafe {
 public:
  ForkSafe() = default;
  ForkSafe(const ForkSafe&) = delete;
  ~ForkSafe() {
    if (auto* of = of_.load(); of->process == getpid()) delete of;
  }

  /// In this process always the same.
  Mutex& here() {
    auto* of = of_.load();
    if (of->process == getpid()) return of->mutex;
    auto* fresh = new OfProcess;
    if (of_.compare_exchange_strong(of, fresh)) return fresh->mutex;  // the old one, which may be held, is left
    delete fresh;
    return of->mutex;
  }

 private:
  struct OfProcess {
    pid_t process = getpid();
    Mutex mutex = {};
  };
  std::atomic<OfProcess*> of_{new OfProcess};
};

}  // namespace hardgrad::python
