#include "experiments/python/fiber.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "core/support/error.hpp"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace hardgrad::python {
namespace {

constexpr std::size_t stack_size = std::size_t{8} << 20;  // as a thread's; pages are taken when they are touched
constexpr std::size_t guard = 1 << 12;

/// Tells the address sanitizer that the stack changes. `leaving` holds the state of the stack that is left; null if it has
/// ended.
struct Switch {
#if defined(__SANITIZE_ADDRESS__)
  Switch(void** leaving, const void* bottom, std::size_t size) { __sanitizer_start_switch_fiber(leaving, bottom, size); }
  static void done(void* state, const void** bottom, std::size_t* size) {
    __sanitizer_finish_switch_fiber(state, bottom, size);
  }
#else
  Switch(void**, const void*, std::size_t) {}
  static void done(void*, const void**, std::size_t*) {}
#endif
};

/// Stacks that are not in use: fresh pages take longer than an episode's other overhead.
std::vector<void*>& idle() {
  struct Stacks {
    std::vector<void*> memory;
    ~Stacks() {
      for (auto* stack : memory) munmap(stack, stack_size);
    }
  };
  thread_local Stacks stacks;
  return stacks.memory;
}

}  // namespace

struct Fiber::Stack {
  Stack() {
    if (!idle().empty()) {
      memory = idle().back();
      idle().pop_back();
      return;
    }
    memory = mmap(nullptr, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    mprotect(memory, guard, PROT_NONE);
  }
  Stack(const Stack&) = delete;
  ~Stack() {
    if (idle().size() < 8)
      idle().push_back(memory);
    else
      munmap(memory, stack_size);
  }
  void* memory;
  void *outside_state = nullptr, *inside_state = nullptr;  // of the sanitizer
  const void* outside_bottom = nullptr;
  std::size_t outside_size = 0;
};

Fiber::Fiber(std::function<void(Fiber&)> body, Threads threads) : body_(std::move(body)), threads_(threads) {}

void Fiber::run(unsigned low, unsigned high) {
  auto& self = *reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32 | low);
  Switch::done(nullptr, &self.stack_->outside_bottom, &self.stack_->outside_size);
  try {
    self.body_(self);
  } catch (const Dropped&) {
  } catch (...) {
    self.error_ = std::current_exception();
  }
  self.ended_ = true;
  const Switch leaving(nullptr, self.stack_->outside_bottom, self.stack_->outside_size);
  swapcontext(&self.inside_, &self.outside_);
}

void Fiber::enter() {
  {
    const Switch entering(&stack_->outside_state, stack_->memory, stack_size);
    swapcontext(&outside_, &inside_);
    Switch::done(stack_->outside_state, nullptr, nullptr);
  }
  if (ended_) stack_.reset();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Fiber::resume() {
  if (ended_) throw UsageError("this episode has ended");
  if (!may_enter()) throw UsageError("an episode's block ends in the thread in which it begins");
  if (!std::exchange(begun_, true)) {
    stack_ = std::make_unique<Stack>();
    getcontext(&inside_);
    inside_.uc_stack.ss_sp = stack_->memory;
    inside_.uc_stack.ss_size = stack_size;
    inside_.uc_link = nullptr;
    const auto self = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&inside_, reinterpret_cast<void (*)()>(&Fiber::run), 2, static_cast<unsigned>(self),
                static_cast<unsigned>(self >> 32));
  }
  enter();
}

void Fiber::suspend() {
  {
    const Switch leaving(&stack_->inside_state, stack_->outside_bottom, stack_->outside_size);
    swapcontext(&inside_, &outside_);
    Switch::done(stack_->inside_state, &stack_->outside_bottom, &stack_->outside_size);
  }
  if (dropping_) throw Dropped();
}

void Fiber::drop() {
  if (!begun_ || ended_) return;
  if (!may_enter()) {
    stack_.release();  // NOLINT(bugprone-unused-return-value)
    ended_ = true;
    return;
  }
  dropping_ = true;
  try {
    enter();
  } catch (...) {  // of a body that does not let Dropped through: the episode is over all the same
  }
}

}  // namespace hardgrad::python
