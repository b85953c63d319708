#include "core/support/arena.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/autodiff/tape.hpp"

namespace hardgrad::testing::arena_test {

TEST_CASE("pieces of an arena are aligned, and are reused after rewind") {
  Arena arena;
  auto* first = arena.allocate<double>(3);
  const auto mark = arena.mark();
  auto* second = arena.allocate<float>(100);
  CHECK(reinterpret_cast<std::uintptr_t>(first) % Arena::alignment == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(second) % Arena::alignment == 0);
  CHECK(arena.used() == 64 + 448);
  arena.rewind(mark);
  CHECK(arena.used() == 64);
  CHECK(arena.allocate<float>(100) == second);
  arena.clear();
  CHECK(arena.used() == 0);
}

TEST_CASE("a piece larger than a block gets a separate block") {
  Arena arena;
  arena.allocate<char>(1);
  auto* large = arena.allocate<char>(std::size_t{1} << 28);
  large[(std::size_t{1} << 28) - 1] = 1;
  CHECK(arena.system_allocations() == 2);
  CHECK(arena.capacity() >= std::size_t{1} << 28);
}

// Under the sanitizer the writes below would end the program, as they should: there only the poison is checked.
TEST_CASE("guarded arena: a write beyond a piece is found when the piece is released" *
          doctest::skip(!Arena::guarded || poisoning)) {
  for (const std::size_t count : {1, 16, 17}) {
    Arena arena;
    arena.allocate<float>(count);
    const auto mark = arena.mark();
    auto* piece = arena.allocate<float>(count);
    CHECK_NOTHROW(arena.rewind(mark));
    piece = arena.allocate<float>(count);
    volatile auto* beyond = piece + count;
    *beyond = 0;
    CHECK_THROWS_AS(arena.rewind(mark), Bug);
  }
}

TEST_CASE("guarded arena: new memory is NaN" * doctest::skip(!Arena::guarded)) {
  Arena arena;
  CHECK(std::isnan(arena.allocate<float>(5)[4]));
  CHECK(std::isnan(arena.allocate<double>(5)[4]));
  CHECK(arena.allocate<int>(1)[0] == -1);
}

TEST_CASE("under the address sanitizer only pieces in use may be accessed" * doctest::skip(!poisoning)) {
  Arena arena;
  auto* piece = arena.allocate<char>(13);
  CHECK(!poisoned(piece, 13));
  CHECK(poisoned(piece + 13, 1));
  auto* next = arena.allocate<char>(1);
  CHECK(poisoned(next - 1, 1));
  const auto mark = arena.mark();
  auto* later = arena.allocate<char>(8);
  arena.rewind(mark);
  CHECK(poisoned(later, 1));
  CHECK(poisoned(later + 100000, 1));  // never allocated
  arena.suspend(piece, 13);
  CHECK(poisoned(piece, 1));
  arena.resume(piece, 13);
  CHECK(!poisoned(piece, 13));
}

}  // namespace hardgrad::testing::arena_test
