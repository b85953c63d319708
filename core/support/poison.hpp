// Poisoned memory: the address sanitizer reports every access. Without the sanitizer these functions do nothing.
#pragma once

#include <cstddef>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
/// For functions that may read poisoned memory.
#define HARDGRAD_UNSANITIZED __attribute__((no_sanitize_address, noinline))
#else
#define HARDGRAD_UNSANITIZED
#endif

namespace hardgrad {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool poisoning = true;
inline void poison(const void* p, std::size_t bytes) { __asan_poison_memory_region(p, bytes); }
inline void unpoison(const void* p, std::size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
/// True if any of the bytes is poisoned. For memory passed to code without instrumentation (BLAS).
inline bool poisoned(const void* p, std::size_t bytes) {
  return bytes > 0 && __asan_region_is_poisoned(const_cast<void*>(p), bytes) != nullptr;
}
#else
inline constexpr bool poisoning = false;
inline void poison(const void*, std::size_t) {}
inline void unpoison(const void*, std::size_t) {}
inline bool poisoned(const void*, std::size_t) { return false; }
#endif

}  // namespace hardgrad
