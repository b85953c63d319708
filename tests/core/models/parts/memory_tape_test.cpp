// The memory tape: hard heads equal heads with the weight 1 at one cell, and a relaxed head reads what hard heads wrote.
#include "core/models/parts/memory_tape.hpp"

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::memory_tape_test {
namespace {

constexpr std::size_t N = 4, W = 2;

/// A head of two states, at these cells. `relaxed`: as weights.
template <class T>
TapeHead<T> head(Tape<T>& tape, std::vector<int> at, bool relaxed) {
  const auto hard = TapeHead<T>(2, N).moved(at);
  return relaxed ? TapeHead<T>(hard.weights(tape)) : hard;
}

/// Three writes, one beside the head; two of them meet in a cell. Then a head reads with the weights `w`.
template <class T>
Var<T> read(Tape<T>& tape, const std::vector<Var<T>>& v, bool relaxed) {
  MemoryTape<T> memory(tape, 2, N, W);
  const auto write = [&](std::vector<int> at, Var<T> g, Var<T> x) {
    const auto q = head(tape, std::move(at), relaxed);
    memory = memory.written(q, memory.read(q), g, x);
  };
  write({0, 3}, v[0], v[1]);
  memory = memory.added_beside(head(tape, {1, 3}, relaxed), v[2]);
  write({2, 3}, v[1], v[0]);
  return memory.read(TapeHead<T>(v[3]));
}

const std::vector<Matrix> inputs{random_matrix(2, W, 1), random_matrix(2, W, 2), random_matrix(2, W, 3),
                                 random_matrix(2, N, 4)};

}  // namespace

TEST_CASE("memory_tape: a hard head is a head with the weight 1 at its cell") {
  Tape<double> tape;
  const auto v = place(tape, inputs);
  const auto hard = read(tape, v, false).value(), relaxed = read(tape, v, true).value();
  for (std::size_t i = 0; i < hard.size(); ++i) CHECK(hard.data[i] == doctest::Approx(relaxed.data[i]).epsilon(1e-14));
  for (const bool as_weights : {false, true})
    expect_gradient([=](auto& tape, const auto& x) { return read(tape, x, as_weights); }, inputs);
}

TEST_CASE("memory_tape: heads move in a circle, and blank cells are 0") {
  Tape<double> tape;
  const auto q = TapeHead<double>(2, N).moved({-1, 1}).moved({-1, 3});
  CHECK(q.at() == std::vector<int>{2, 0});
  const auto blank = MemoryTape<double>(tape, 2, N, W).read(q).value();
  for (std::size_t i = 0; i < blank.size(); ++i) CHECK(blank.data[i] == 0);
}

}  // namespace hardgrad::testing::memory_tape_test
