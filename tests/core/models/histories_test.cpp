// Histories against what a network would have to work out: rows with one past are one state.
#include "core/models/histories.hpp"

#include <doctest/doctest.h>

using namespace hardgrad;

namespace {

using Ints = std::vector<int>;

/// An answer: row r goes on from `parent[r]` and took `option[r]`.
Choice<double> answer(RowsPtr asking, Ints parent, Ints option, int step) {
  return {Rows::after(std::move(asking), std::move(parent), step), std::move(option), {}};
}

Batch batch_of(int examples) {
  Batch batch;
  batch.id.resize(examples);
  return batch;
}

}  // namespace

TEST_CASE("rows of one example and one past share a state, not with another example") {
  const auto batch = batch_of(2);
  const Distinct distinct(batch);
  const auto root = Histories::root(distinct);
  CHECK(root.of_row == Ints{0, 1});
  const auto first = answer(Rows::root(2), {0, 0, 0, 1, 1}, {2, 0, 2, 2, 2}, 0);
  const auto after = root.after(first, 3, distinct);
  CHECK(after.of_row == Ints{0, 1, 0, 2, 2});
  CHECK(after.row == Ints{0, 1, 3});
  CHECK(after.example == Ints{0, 0, 1});
  CHECK(after.parent == Ints{0, 0, 1});
  CHECK(after.option == Ints{2, 0, 2});
  // Equal options part the rows that differ already, and join those that do not.
  const auto then = after.after(answer(first.rows, {0, 1, 2, 3, 4}, {1, 1, 1, 0, 1}, 1), 3, distinct);
  CHECK(then.of_row == Ints{0, 1, 0, 2, 3});
  CHECK(then.parent == Ints{0, 1, 2, 2});
  CHECK(then.example == Ints{0, 0, 1, 1});
  CHECK(then.chosen(Items(Ints{2, 4})) == Ints{1, 1, 2, 3});
}

TEST_CASE("before anything was seen, one state serves all examples until the first choice") {
  const auto batch = batch_of(2);
  const Distinct distinct(batch);
  const auto one = Histories::one(2);
  CHECK(one.size() == 1);
  const auto after = one.after(answer(Rows::root(2), {0, 0, 1, 1}, {1, 1, 1, 1}, 0), 2, distinct);
  CHECK(after.of_row == Ints{0, 0, 1, 1});
  CHECK(after.parent == Ints{0, 0});
  CHECK(after.example == Ints{0, 1});
}

TEST_CASE("copies of one example are one until they choose differently") {
  Batch batch;
  batch.id = {7, 8};
  const auto copies = repeated(batch, 2);
  const Distinct distinct(copies);
  const auto root = Histories::root(distinct);
  CHECK(root.of_row == Ints{0, 0, 1, 1});
  CHECK(root.row == Ints{0, 2});
  const auto after = root.after(answer(Rows::root(4), {0, 1, 2, 3}, {0, 0, 0, 1}, 0), 2, distinct);
  CHECK(after.of_row == Ints{0, 0, 1, 2});
  CHECK(after.example == Ints{0, 1, 1});
}

TEST_CASE("finished examples leave, their rows have no state") {
  const auto batch = batch_of(3);
  const Distinct distinct(batch);
  const auto left = Histories::root(distinct).only([](int example) { return example != 1; });
  CHECK(left.of_row == Ints{0, -1, 1});
  CHECK(left.example == Ints{0, 2});
  CHECK(left.parent == Ints{0, 2});
  CHECK(left.labels_on_rows({5, 6}) == Ints{5, -1, 6});
  const auto after = left.after(answer(Rows::root(3), {0, 0, 1, 2}, {0, 1, 0, 1}, 0), 2, distinct);
  CHECK(after.of_row == Ints{0, 1, -1, 2});
  CHECK(after.parent == Ints{0, 0, 1});
  Tape<double> tape;
  const std::vector<double> x{3, 4};
  const auto spread = left.on_rows(tape.input({x.data(), 2, 1}));
  CHECK(spread.value()(0, 0) == 3);
  CHECK(spread.value()(1, 0) == 0);
  CHECK(spread.value()(2, 0) == 4);
  CHECK(left.on_states(spread).value()(1, 0) == 4);
  CHECK(left.moved(3).size() == 2);
  CHECK(left.again().moved(2).empty());
}

TEST_CASE("after a relaxed choice every row has its own state") {
  Tape<double> tape;
  const auto batch = batch_of(1);
  const Distinct distinct(batch);
  Choice<double> relaxed{Rows::after(Rows::root(1), {0, 0}, 0), {}, tape.constant(2, 3, 1.0 / 3)};
  const auto after = Histories::root(distinct).after(relaxed, 3, distinct);
  CHECK(after.of_row == Ints{0, 1});
  CHECK(after.option.empty());
}
