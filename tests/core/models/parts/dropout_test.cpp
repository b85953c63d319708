#include "core/models/parts/dropout.hpp"

#include <doctest/doctest.h>

#include "core/models/parts/replicates.hpp"

namespace hardgrad::testing::dropout_test {
namespace {

Batch three() {
  Batch batch;
  batch.id = {4, 7, 9};
  return batch;
}

/// The kept ones of 30 entries, for each of these examples, at one place of the network.
std::vector<double> kept(const Batch& batch, std::vector<int> example, std::uint32_t place = 0, double rate = 0.5) {
  Tape<double> tape;
  const auto y = dropout(tape.constant(example.size(), 30, 1.0), rate, batch, example, place).value();
  return {y.data, y.data + y.size()};
}

}  // namespace

TEST_CASE("dropout in a model: nothing is dropped from a batch without a key, or at rate 0") {
  auto batch = three();
  CHECK(kept(batch, {0, 1}) == std::vector<double>(60, 1.0));
  add_dropout(batch, Key(1));
  CHECK(kept(batch, {0, 1}) != std::vector<double>(60, 1.0));
  CHECK(kept(batch, {0, 1}, 0, 0) == std::vector<double>(60, 1.0));
}

TEST_CASE("dropout in a model: the mask depends on the example, not on its row or batch") {
  auto batch = three();
  add_dropout(batch, Key(1));
  const auto one = kept(batch, {1});
  CHECK(kept(batch.select({2, 1}), {1}) == one);
  auto both = one;
  both.insert(both.end(), one.begin(), one.end());
  CHECK(kept(batch, {1, 1}) == both);  // two samples of it
  CHECK(kept(repeated(batch, 3), {4}) == one);
  CHECK(kept(batch, {0}) != one);
  CHECK(kept(batch, {1}, 1) != one);  // another place in the network
  auto later = three();
  add_dropout(later, Key(2));
  CHECK(kept(later, {1}) != one);
}

}  // namespace hardgrad::testing::dropout_test
