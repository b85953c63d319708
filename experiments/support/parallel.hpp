// Loops over independent tasks in TBB.
#pragma once

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <atomic>

namespace hardgrad {

/// Threads that help: as many as asked for (0: all there can be), at most one for each core that we may use.
inline int useful_jobs(int asked) {
  const int cores = tbb::this_task_arena::max_concurrency();
  return asked > 0 ? std::min(asked, cores) : cores;
}

/// f(i) for i in [0, count), in any order.
template <class F>
void parallel_for(int count, F&& f) {
  tbb::parallel_for(0, count, f, tbb::simple_partitioner{});
}

/// f(lane, i) for i in [0, count), begun in order. What carries the number `lane` < lanes() runs one after the other: a lane
/// may have memory of its own.
inline int lanes() { return tbb::this_task_arena::max_concurrency(); }
template <class F>
void parallel_in_order(int count, F&& f) {
  std::atomic<int> next{0};
  parallel_for(std::min(count, lanes()), [&](int lane) {
    for (int i; (i = next.fetch_add(1, std::memory_order_acq_rel)) < count;) f(lane, i);
  });
}

}  // namespace hardgrad
