// A bump allocator: memory is taken from large blocks and given back all at once, so that the next gradient
// reuses the same pages instead of asking the kernel for new ones.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <vector>

namespace hardgrad {

class Arena {
 public:
  static constexpr std::size_t alignment = 64, huge_page = std::size_t{1} << 21;

  template <class T>
  T* allocate(std::size_t count) {
    static_assert(std::is_trivially_destructible_v<T>, "the arena never runs destructors");
    return static_cast<T*>(raw(count * sizeof(T)));
  }

  /// A place to go back to.
  struct Mark {
    std::size_t block = 0, used = 0;
  };
  Mark mark() const { return {current_, used_}; }
  /// Everything handed out since `mark` becomes invalid; the blocks stay.
  void rewind(Mark mark) {
    current_ = mark.block;
    used_ = mark.used;
  }
  void clear() { rewind({}); }

  /// Bytes held, in use or not.
  std::size_t capacity() const {
    std::size_t total = 0;
    for (const auto& block : blocks_) total += block.size;
    return total;
  }
  /// Bytes handed out since the last `clear` (and what was left over at the ends of blocks).
  std::size_t used() const {
    std::size_t total = used_;
    for (std::size_t i = 0; i < current_; ++i) total += blocks_[i].size;
    return total;
  }
  /// Blocks ever asked of the system: stands still once the arena is warm.
  std::size_t system_allocations() const { return blocks_.size(); }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{huge_page}); }
  };
  struct Block {
    std::unique_ptr<std::byte[], Free> memory;
    std::size_t size;
  };

  void* raw(std::size_t bytes) {
    bytes = (bytes + alignment - 1) / alignment * alignment;
    while (current_ < blocks_.size() && used_ + bytes > blocks_[current_].size) {
      ++current_;
      used_ = 0;
    }
    if (current_ == blocks_.size()) {
      const std::size_t doubled = blocks_.empty() ? first_block : 2 * blocks_.back().size;
      const std::size_t size = bytes > doubled ? bytes : (doubled < largest_block ? doubled : largest_block);
      const std::size_t wanted = bytes > size ? bytes : size;
      blocks_.push_back({std::unique_ptr<std::byte[], Free>(static_cast<std::byte*>(
                             ::operator new[](wanted, std::align_val_t{huge_page}))),
                         wanted});
      if (wanted >= huge_page) ::madvise(blocks_.back().memory.get(), wanted, MADV_HUGEPAGE);  // advice: may fail
      used_ = 0;
    }
    void* p = blocks_[current_].memory.get() + used_;
    used_ += bytes;
    return p;
  }

  static constexpr std::size_t first_block = std::size_t{1} << 18, largest_block = std::size_t{1} << 26;
  std::vector<Block> blocks_;
  std::size_t current_ = 0, used_ = 0;
};

}  // namespace hardgrad
