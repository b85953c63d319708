// Histories, against separate states of a network: rows with the same history share a state.
#include "core/models/parts/histories.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <utility>

#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::histories_test {
namespace {

using Ints = std::vector<int>;

/// An answer: row r continues `parent[r]` and chose `option[r]`.
Choice<double> answer(RowsPtr asking, Ints parent, Ints option, int step) {
  return {Rows::after(std::move(asking), std::move(parent), step), ChosenOptions{std::move(option)}};
}

Batch batch_of(int examples) {
  Batch batch;
  batch.id.resize(examples);
  return batch;
}

}  // namespace

TEST_CASE("rows of one example with the same history share a state, rows of different examples do not") {
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
  // Equal options keep different rows apart, and rows alike together.
  const auto then = after.after(answer(first.rows, {0, 1, 2, 3, 4}, {1, 1, 1, 0, 1}, 1), 3, distinct);
  CHECK(then.of_row == Ints{0, 1, 0, 2, 3});
  CHECK(then.parent == Ints{0, 1, 2, 2});
  CHECK(then.example == Ints{0, 0, 1, 1});
  CHECK(then.chosen(Items(Ints{2, 4})) == Ints{1, 1, 2, 3});
}

TEST_CASE("before the first input, one state serves all examples until the first choice") {
  const auto batch = batch_of(2);
  const Distinct distinct(batch);
  const auto one = Histories::one(2);
  CHECK(one.size() == 1);
  const auto after = one.after(answer(Rows::root(2), {0, 0, 1, 1}, {1, 1, 1, 1}, 0), 2, distinct);
  CHECK(after.of_row == Ints{0, 0, 1, 1});
  CHECK(after.parent == Ints{0, 0});
  CHECK(after.example == Ints{0, 1});
}

TEST_CASE("copies of one example are one state until they choose differently") {
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

TEST_CASE("finished examples are removed, their rows have no state") {
  const auto batch = batch_of(3);
  const Distinct distinct(batch);
  const auto left = Histories::root(distinct).only([](int example) { return example != 1; });
  CHECK(left.of_row == Ints{0, -1, 1});
  CHECK(left.example == Ints{0, 2});
  CHECK(left.parent == Ints{0, 2});
  CHECK(left.labels_on_rows(Ints{5, 6}) == Ints{5, -1, 6});
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
  CHECK(left.next_step().moved(2).empty());
}

TEST_CASE("rows share a state if they made equal choices in every column") {
  const auto batch = batch_of(2);
  const Distinct distinct(batch);
  const auto root = Histories::root(distinct);
  // Two columns. In the first example, rows 0 and 3 made equal choices, and rows 1 and 2 differ in one column each.
  const auto first = answer(Rows::root(2), {0, 0, 0, 0, 1, 1}, {2, 0, 2, 1, 0, 0, 2, 0, 2, 0, 2, 1}, 0);
  const auto after = root.after(first, 3, distinct);
  CHECK(after.of_row == Ints{0, 1, 2, 0, 3, 4});
  CHECK(after.row == Ints{0, 1, 2, 4, 5});
  CHECK(after.example == Ints{0, 0, 0, 1, 1});
  CHECK(after.parent == Ints{0, 0, 0, 1, 1});
  CHECK(after.option == Ints{2, 0, 2, 1, 0, 0, 2, 0, 2, 1});
  // Column d of example b has items 2 b + d.
  CHECK(after.chosen(Items(4, 3)) == Ints{2, 3, 2, 4, 0, 3, 8, 9, 8, 10});
  const auto left = Histories(after).only([](int example) { return example == 1; });
  CHECK(left.option == Ints{2, 0, 2, 1});
  auto apart = first;
  apart.unshared = true;
  CHECK(root.after(apart, 3, distinct).of_row == Ints{0, 1, 2, 3, 4, 5});
  // Weights of cells and values of items: state n gets the sum over column d's items.
  Tape<double> tape;
  Choice<double> relaxed{first.rows, Relaxed<double>{{}, tape.constant(12, 3, 0.5)}};
  const auto states = root.after(relaxed, 3, distinct);
  CHECK(states.size() == 6);
  const auto read = states.mixed(relaxed.weights(), tape.constant(12, 1, 2.0), Items(4, 3));
  CHECK(read.rows() == 12);
  CHECK(read.value()(11, 0) == 3);
}

TEST_CASE("after a relaxed choice every row has a separate state") {
  Tape<double> tape;
  const auto batch = batch_of(1);
  const Distinct distinct(batch);
  Choice<double> relaxed{Rows::after(Rows::root(1), {0, 0}, 0), Relaxed<double>{{}, tape.constant(2, 3, 1.0 / 3)}};
  const auto after = Histories::root(distinct).after(relaxed, 3, distinct);
  CHECK(after.of_row == Ints{0, 1});
  CHECK(after.option.empty());
}

namespace {

/// [losses of all rows..., gradient of a number that depends on all values] of one run.
std::vector<double> everything(const Model<double>& model, const Batch& batch, Handler<double>& handler, bool apart) {
  Tape<double> tape;
  Episode<double> episode(tape, handler, batch.examples());
  if (apart) episode.use_independent_rows();
  model.run(batch, episode);
  std::vector<double> all;
  for (const auto& cost : episode.costs())
    all.insert(all.end(), cost.loss.value().data, cost.loss.value().data + cost.loss.rows());
  const auto total = testing::mixture(episode);
  std::vector<double> gradient(model.parameters().size());
  tape.backward(total);
  tape.add_gradient(model.parameters(), std::span<double>(gradient));
  all.insert(all.end(), gradient.begin(), gradient.end());
  return all;
}

}  // namespace

TEST_CASE("rows that share states have the same losses and gradients as separate rows") {
  struct Scene {
    std::string model;
    Dimensions dimensions;
    std::map<std::string, Array<int>> integers;
  };
  const std::vector<int> source{3, 4, 5, 2, 4, 1, 0, 0, 5, 3, 3, 0}, target{3, 4, 2, 2, 0, 0, 4, 2, 0};
  const Dimensions sentences{
      {"source_vocabulary", 6}, {"target_vocabulary", 5}, {"source_length", 5}, {"target_length", 4}, {"bos", 1}, {"eos", 2}};
  const std::map<std::string, Array<int>> pairs{{"source", shaped<int>({3, 4}, source)},
                                                {"source_length", shaped<int>({3}, {4, 2, 3})},
                                                {"target", shaped<int>({3, 3}, target)},
                                                {"target_length", shaped<int>({3}, {3, 1, 2})}};
  std::vector<Scene> scenes;
  for (std::string feed : {"none", "soft", "sampled"})
    scenes.push_back({"translator[embedding=3,hidden=3,feed=" + feed + "]", sentences, pairs});
  scenes.push_back({"memory_reader[embedding=3,hops=3]",
                    {{"vocabulary", 6}, {"answers", 3}, {"answer_word", 2}, {"sentences", 3}, {"words", 2}},
                    {{"story", shaped<int>({3, 3, 2}, {1, 2, 3, 0, 0, 0, 4, 5, 0, 0, 0, 0, 2, 1, 5, 5, 3, 4})},
                     {"story_length", shaped<int>({3}, {2, 1, 3})},
                     {"question", shaped<int>({3, 2}, {1, 2, 3, 0, 5, 4})},
                     {"answer", shaped<int>({3}, {0, 2, 1})}}});
  for (std::string core : {"rnn", "lstm"})
    scenes.push_back({"glimpse_reader[grid=2,patch=2,features=3,hidden=3,glimpses=3,core=" + core + "]",
                      {{"height", 4}, {"width", 4}, {"classes", 3}},
                      {{"label", shaped<int>({3}, {0, 2, 1})}}});
  for (const auto& scene : scenes) {
    CAPTURE(scene.model);
    const auto model = testing::lively(scene.model, scene.dimensions);
    auto batch = batch_of(3);
    batch.integers = scene.integers;
    Array<double> image = zeros<double>({3, 4, 4});
    for (std::size_t i = 0; i < image.size(); ++i) image.flat(i) = std::sin(double(i));
    batch.reals["image"] = image;
    const auto same = [&](auto make) {
      auto together = make(), apart = make();
      const auto shared = everything(*model, batch, *together, false), alone = everything(*model, batch, *apart, true);
      REQUIRE(shared.size() == alone.size());
      double worst = 0, most = 0;
      for (std::size_t i = 0; i < shared.size(); ++i) {
        worst = std::max(worst, std::abs(shared[i] - alone[i]));
        most = std::max(most, std::abs(alone[i]));
      }
      CHECK(worst < 1e-12 * most);
    };
    same([&] { return std::make_unique<EnumerateHandler<double>>(); });
    KeyedRandomness random(Key(5)), again(Key(5));
    auto* next = &random;
    same([&] { return std::make_unique<SampleHandler<double>>(6, *std::exchange(next, &again), batch.id); });
  }
}

}  // namespace hardgrad::testing::histories_test
