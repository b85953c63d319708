// Memory in the steady state: the tape asks the system for nothing, and no matrix lies on the heap.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fmt/format.h>
#include <new>

#include "core/estimator/estimator.hpp"
#include "experiments/tasks/task.hpp"

namespace {
std::size_t allocations = 0, bytes = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  bytes += size;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace hardgrad::testing {
namespace {

struct Steady {
  std::size_t allocations, bytes, blocks_before, blocks_after;
};

/// The fourth gradient, after three that warmed the tape.
Steady fourth(const std::string& spec, int width) {
  const auto task = make_task(Spec::parse("translation[examples=40,max_length=6]"), Key(1));
  const auto model = make_model<float>(Spec::parse(fmt::format("translator[embedding={0},hidden={0},feed=sampled]", width)),
                                       task->dimensions(), Key(2));
  const auto estimator = make_estimator<float>(Spec::parse(spec), model->structure(), Key(3));
  const auto batch = task->batch(Split::train, {0, 1, 2, 3});
  Tape<float> tape;
  std::vector<float> gradient(model->parameters().size());
  Steady steady{};
  for (int i = 0; i < 4; ++i) {
    steady.blocks_before = tape.arena().system_allocations();
    const auto count = allocations, size = bytes;
    tape.clear();
    KeyedRandomness random(Key(4));
    const auto estimate = estimator->estimate({tape, *model, batch, random});
    tape.backward_to_leaves(estimate.surrogate);
    tape.add_gradient(model->parameters(), std::span<float>(gradient));
    steady.allocations = allocations - count;
    steady.bytes = bytes - size;
    steady.blocks_after = tape.arena().system_allocations();
  }
  return steady;
}

TEST_CASE("a warm tape takes no block, and the heap holds lists of rows, never matrices") {
  for (const auto* spec : {"reinforce", "rloo[samples=4]"}) {
    CAPTURE(spec);
    const auto narrow = fourth(spec, 8), wide = fourth(spec, 64);
    CHECK(wide.blocks_before == wide.blocks_after);
    CHECK(narrow.allocations > 0);  // rows, options, signals: lists of as many numbers as there are rows
    CHECK(narrow.allocations == wide.allocations);
    CHECK(narrow.bytes == wide.bytes);
  }
}

}  // namespace
}  // namespace hardgrad::testing
