// Loops over independent tasks in TBB.
#pragma once

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "experiments/support/stop.hpp"

namespace hardgrad {

/// Number of useful threads: the requested number (0: the maximum), at most one per available core.
inline int useful_jobs(int asked) {
  const int cores = tbb::this_task_arena::max_concurrency();
  return asked > 0 ? std::min(asked, cores) : cores;
}

/// f(i) for i in [0, count), in any order.
template <class F>
void parallel_for(int count, F&& f) {
  tbb::parallel_for(0, count, f, tbb::simple_partitioner{});
}

/// The results f(i) for i in [0, count), joined in their order by `R::join(const R&)`. The brackets of the joins depend on
/// `count` alone, so the sum is the same for any number of threads. Few results are in memory at a time: log2(count) for each
/// thread. Interrupted if work that this is part of was stopped.
template <class R, class F>
R parallel_joined(int count, F&& f) {
  struct Body {
    explicit Body(F& of) : f(of) {}
    Body(Body& other, tbb::split) : f(other.f) {}
    void operator()(const tbb::blocked_range<int>& one) { result.emplace(f(one.begin())); }
    void join(const Body& later) { result->join(*later.result); }
    F& f;
    std::optional<R> result;
  };
  Body all(f);
  tbb::task_group_context context;
  tbb::parallel_deterministic_reduce(tbb::blocked_range<int>(0, count), all, tbb::simple_partitioner{}, context);
  if (context.is_group_execution_cancelled()) throw Interrupted{};
  return std::move(*all.result);
}

/// f(lane, i) for i in [0, count), started in order. Calls with the same `lane` < `most` run one after another, so each lane
/// can have its own memory. After an exception no later call begins; the exception of the first i is thrown.
inline int lanes() { return tbb::this_task_arena::max_concurrency(); }
template <class F>
void parallel_in_order(int count, F&& f, int most = lanes()) {
  std::atomic<int> next{0}, failed{count};
  std::mutex mutex;
  std::exception_ptr error;
  parallel_for(std::min({count, lanes(), most}), [&](int lane) {
    for (int i; (i = next.fetch_add(1, std::memory_order_acq_rel)) < failed;) {
      try {
        f(lane, i);
      } catch (...) {
        const std::lock_guard guard(mutex);
        if (i < failed) {
          failed = i;
          error = std::current_exception();
        }
      }
    }
  });
  if (error) std::rethrow_exception(error);
}

/// use(f(lane, i)) for i in [0, count): f as in `parallel_in_order`; `use` in order, one result at a time, each as soon as those
/// before it are there.
template <class F, class Use>
void parallel_then_in_order(int count, F&& f, Use&& use) {
  std::mutex mutex;
  std::map<int, std::invoke_result_t<F, int, int>> waiting;
  int next = 0;
  parallel_in_order(count, [&](int lane, int i) {
    auto result = f(lane, i);
    const std::lock_guard guard(mutex);
    waiting.emplace(i, std::move(result));
    for (auto it = waiting.find(next); it != waiting.end(); it = waiting.find(++next)) {
      use(std::move(it->second));
      waiting.erase(it);
    }
  });
}

}  // namespace hardgrad
