// Memory in the steady state: the tape requests no block, and matrices are not on the heap.
#include <doctest/doctest.h>

#include <fmt/format.h>
#include <cstdlib>
#include <new>
#include <numeric>

#include "core/autodiff/tape.hpp"
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
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  bytes += size;
  return std::malloc(size ? size : 1);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace hardgrad::testing::allocation_test {
using namespace tasks;
namespace {

struct Steady {
  std::size_t allocations, bytes, blocks_before, blocks_after;
};

/// The fourth gradient of `examples` examples, after three that warm the tape.
Steady fourth(const std::string& spec, const std::string& task_spec, const std::string& model_spec, int examples) {
  const auto task = make_task(Spec::parse(task_spec), Key(1));
  const auto model = make_model<float>(Spec::parse(model_spec), task->dimensions(), Key(2));
  const auto estimator = make_estimator<float>(Spec::parse(spec), model->structure(), Key(3));
  std::vector<int> indices(examples);
  std::iota(indices.begin(), indices.end(), 0);
  const auto batch = task->batch(Split::train, indices);
  Tape<float> tape;
  std::vector<float> gradient(model->parameters().size());
  Steady steady{};
  for (int i = 0; i < 4; ++i) {
    steady.blocks_before = tape.arena().system_allocations();
    const auto count = allocations, size = bytes;
    tape.clear();
    KeyedRandomness random(Key(4));
    const auto estimate = estimator->draw({tape, *model, batch, random});
    differentiate(estimate.surrogate, model->parameters(), gradient);
    steady.allocations = allocations - count;
    steady.bytes = bytes - size;
    steady.blocks_after = tape.arena().system_allocations();
  }
  return steady;
}

TEST_CASE("a warm tape requests no block, and the heap holds lists of rows, but no matrices") {
  for (const auto* spec : {"reinforce", "rloo[samples=4]"}) {
    CAPTURE(spec);
    const auto of_width = [spec](int width) {
      return fourth(spec, "translation[examples=40,max_length=6]",
                    fmt::format("translator[embedding={0},hidden={0},feed=sampled]", width), 4);
    };
    const auto narrow = of_width(8), wide = of_width(64);
    CHECK(wide.blocks_before == wide.blocks_after);
    CHECK(narrow.allocations > 0);  // rows, options, signals: lists with one number per row
    CHECK(narrow.allocations == wide.allocations);
    // The number of rows that share a state depends on the draws; a matrix would add much more.
    CHECK(double(wide.bytes) == doctest::Approx(double(narrow.bytes)).epsilon(0.02));
  }
}

TEST_CASE("more examples, samples, options and columns make lists longer, but not more numerous") {
  const auto bits = [](const std::string& spec, int choices, int options, int examples) {
    return fourth(spec, "bits", fmt::format("bits[bits={},options={},logit=0.3]", choices, options), examples).allocations;
  };
  for (const std::string spec : {"reinforce", "rloo[samples=4]", "exact"}) {
    CAPTURE(spec);
    const auto few = bits(spec, 16, 3, 2);
    CHECK(bits(spec, 16, 3, 50) == few);
    CHECK(bits(spec, 16, 7, 2) == few);
    CHECK(bits(spec, 32, 3, 2) == few);
  }
  CHECK(bits("rloo[samples=4]", 16, 3, 2) == bits("rloo[samples=50]", 16, 3, 2));
}

}  // namespace
}  // namespace hardgrad::testing::allocation_test
