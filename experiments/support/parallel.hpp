// Loops over independent tasks in TBB.
#pragma once

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>

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

/// f(lane, i) for i in [0, count), started in order. Calls with the same `lane` < lanes() run one after another, so each lane
/// can have its own memory.
inline int lanes() { return tbb::this_task_arena::max_concurrency(); }
template <class F>
void parallel_in_order(int count, F&& f) {
  std::atomic<int> next{0};
  parallel_for(std::min(count, lanes()), [&](int lane) {
    for (int i; (i = next.fetch_add(1, std::memory_order_acq_rel)) < count;) f(lane, i);
  });
}

}  // namespace hardgrad
