#include "core/support/arena.hpp"

#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "core/support/error.hpp"

namespace hardgrad {
namespace {

#if defined(NDEBUG) || defined(__SANITIZE_THREAD__)  // the thread sanitizer would record every byte of every guard
constexpr bool guards_on = false;
#else
constexpr bool guards_on = true;
#endif

// Every gradient allocates and frees vectors of batch size. So malloc keeps their memory instead of returning it to the kernel.
[[maybe_unused]] const bool malloc_keeps = mallopt(M_MMAP_THRESHOLD, 1 << 23) && mallopt(M_TRIM_THRESHOLD, 1 << 26);

constexpr std::size_t first_block = std::size_t{1} << 18, largest_block = std::size_t{1} << 26;
constexpr std::byte guard_byte{0xA5}, unwritten_byte{0xFF};  // eight (four) bytes 0xFF are a NaN in double (float)

/// Reads poisoned bytes, so the sanitizer is disabled here.
HARDGRAD_UNSANITIZED bool intact(const std::byte* first, std::size_t bytes) {
  const volatile auto* p = first;  // volatile: no call of memcmp, which the sanitizer checks
  for (std::size_t i = 0; i < bytes; ++i)
    if (p[i] != guard_byte) return false;
  return true;
}

std::size_t aligned(std::size_t bytes) { return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment; }

}  // namespace

const bool Arena::guarded = guards_on;

Arena::Chunk::Chunk(std::size_t bytes)
    : memory(static_cast<std::byte*>(::operator new[](bytes, std::align_val_t{huge_page}))), size(bytes) {
  if (bytes >= huge_page) ::madvise(memory.get(), bytes, MADV_HUGEPAGE);  // only advice, may fail
  poison(memory.get(), bytes);
}
Arena::Chunk::~Chunk() {
  if (memory) unpoison(memory.get(), size);
}
void Arena::Chunk::Free::operator()(std::byte* p) const { ::operator delete[](p, std::align_val_t{huge_page}); }

void* Arena::raw(std::size_t bytes) {
  const std::size_t piece = aligned(bytes) + (guards_on ? alignment : 0);
  while (current_ < blocks_.size() && used_ + piece > blocks_[current_].size) {
    ++current_;
    used_ = 0;
  }
  if (current_ == blocks_.size()) {
    const std::size_t doubled = blocks_.empty() ? first_block : 2 * blocks_.back().size;
    blocks_.emplace_back(std::max(piece, std::min(doubled, largest_block)));
    used_ = 0;
  }
  auto* p = blocks_[current_].memory.get() + used_;
  used_ += piece;
  if constexpr (guards_on) {
    unpoison(p, piece);
    std::fill_n(p, bytes, unwritten_byte);
    std::fill_n(p + bytes, piece - bytes, guard_byte);
    poison(p + bytes, piece - bytes);
    guards_.push_back({p + bytes, piece - bytes});
  }
  return p;
}

void Arena::rewind(Mark mark) {
  for (; guards_.size() > mark.guards; guards_.pop_back())
    if (!intact(guards_.back().first, guards_.back().bytes)) throw Bug("a write beyond the end of the tape's memory");
  if constexpr (poisoning)
    for (std::size_t i = mark.block; i < blocks_.size() && i <= current_; ++i) {
      const std::size_t first = i == mark.block ? mark.used : 0, last = i == current_ ? used_ : blocks_[i].size;
      poison(blocks_[i].memory.get() + first, last - first);
    }
  current_ = mark.block;
  used_ = mark.used;
}

void Arena::suspend_bytes(void* piece, std::size_t bytes) {
  if constexpr (guards_on) std::fill_n(static_cast<std::byte*>(piece), bytes, unwritten_byte);
  poison(piece, bytes);
}
void Arena::resume_bytes(void* piece, std::size_t bytes) { unpoison(piece, bytes); }

std::size_t Arena::capacity() const {
  std::size_t total = 0;
  for (const auto& block : blocks_) total += block.size;
  return total;
}

std::size_t Arena::used() const {
  std::size_t total = used_;
  for (std::size_t i = 0; i < current_; ++i) total += blocks_[i].size;
  return total - guards_.size() * (guards_on ? alignment : 0);
}

}  // namespace hardgrad
