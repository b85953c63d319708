// A bump allocator: memory is taken from large blocks and released all at once, so that the next gradient reuses the same pages
// instead of requesting new ones from the kernel.
//
// In builds with assertions (no NDEBUG: presets debug, sanitize; not under the thread sanitizer) every piece is followed by a
// guard of known bytes, which is checked on release, and new memory is filled with NaN. Under the address sanitizer,
// unallocated memory is also poisoned, so that the first wrong access is reported where it happens.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
/// For functions that may read poisoned memory.
#define HARDGRAD_UNSANITIZED __attribute__((no_sanitize_address, noinline))
#else
#define HARDGRAD_UNSANITIZED
#endif

namespace hardgrad {

// Poisoned memory: the address sanitizer reports every access. Without the sanitizer these functions do nothing.
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

class Arena {
 public:
  static constexpr std::size_t alignment = 64, huge_page = std::size_t{1} << 21;
  /// True in builds with guards.
  static const bool guarded;

  template <class T>
  T* allocate(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>, "the arena never runs destructors");
    return static_cast<T*>(raw(count * sizeof(T)));
  }
  /// Access to this piece is an error until `resume`; it remains allocated.
  template <class T>
  void suspend(T* piece, std::size_t count) {
    suspend_bytes(piece, count * sizeof(T));
  }
  template <class T>
  void resume(T* piece, std::size_t count) {
    resume_bytes(piece, count * sizeof(T));
  }

  /// A state of the arena, for `rewind`.
  struct Mark {
    std::size_t block = 0, used = 0, guards = 0;
  };
  Mark mark() const { return {current_, used_, guards_.size()}; }
  /// Releases everything allocated since `mark`; the blocks are kept. Bug if a guard was overwritten.
  void rewind(Mark mark);
  void clear() { rewind({}); }

  /// Bytes of all blocks, in use or not.
  std::size_t capacity() const;
  /// Bytes allocated since the last `clear`, including unused ends of blocks, without guards.
  std::size_t used() const;
  /// Number of blocks ever requested from the system; constant once the arena has reached its working size.
  std::size_t system_allocations() const { return blocks_.size(); }

 private:
  struct Chunk {
    Chunk(std::size_t bytes);
    Chunk(Chunk&&) = default;
    ~Chunk();
    struct Free {
      void operator()(std::byte* p) const;
    };
    std::unique_ptr<std::byte[], Free> memory;
    std::size_t size;
  };
  /// The guard bytes after a piece.
  struct Guard {
    std::byte* first;
    std::size_t bytes;
  };

  void* raw(std::size_t bytes);
  void suspend_bytes(void* piece, std::size_t bytes);
  void resume_bytes(void* piece, std::size_t bytes);

  std::vector<Chunk> blocks_;
  std::vector<Guard> guards_;  // empty where pieces are not guarded
  std::size_t current_ = 0, used_ = 0;
};

}  // namespace hardgrad
