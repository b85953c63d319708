#include "core/autodiff/rearrange.hpp"

#include "core/autodiff/reduce.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::rearrange_test {

TEST_CASE("gather_rows: repeated rows, missing rows, no rows") {
  for (const std::vector<int>& index : {std::vector<int>{0}, {2, 0, 2, 2}, {-1, 1, -1, 1, 0}, {-1, -1}, {0, 1, 2}})
    expect_gradient([&](auto&, const auto& x) { return gather_rows(x[0], std::span<const int>(index)); },
                    {random_matrix(3, 4, 1)});
  Tape<double> tape;
  const std::vector<int> index{-1, 1}, outside{3}, below{-2};
  auto x = tape.constant(3, 2, 5);
  CHECK(gather_rows(x, std::span<const int>(index)).value()(0, 1) == 0);
  CHECK(gather_rows(x, std::span<const int>(index)).value()(1, 1) == 5);
  CHECK_THROWS_AS(gather_rows(x, std::span<const int>(outside)), Bug);
  CHECK_THROWS_AS(gather_rows(x, std::span<const int>(below)), Bug);
}

TEST_CASE("concat_columns and slice_columns") {
  for (std::size_t r : {1, 4}) {
    const std::vector<Matrix> x{random_matrix(r, 2, 1), random_matrix(r, 1, 2), random_matrix(r, 5, 3)};
    expect_gradient([](auto&, const auto& v) { return concat_columns({v[0], v[1], v[2]}); }, x);
    expect_gradient([](auto&, const auto& v) { return concat_columns({v[0], v[2], v[0]}); }, x);
    for (auto [from, count] : {std::pair{0, 5}, {0, 2}, {2, 3}, {4, 1}})
      expect_gradient([&](auto&, const auto& v) { return slice_columns(v[2], from, count); }, x);
    // Adjacent and overlapping slices of one matrix.
    expect_gradient(
        [](auto&, const auto& v) {
          return concat_columns({slice_columns(v[2], 1, 3), slice_columns(v[2], 0, 2)});
        },
        x);
  }
}

TEST_CASE("stack_rows, and gathers from a stack") {
  const auto f = [](auto how) {
    return [how](auto&, const auto& v) { return how(std::span<const std::decay_t<decltype(v[0])>>(v)); };
  };
  const std::vector<Matrix> one{random_matrix(2, 3, 1)},
      several{random_matrix(2, 3, 1), random_matrix(1, 3, 2), random_matrix(4, 3, 3)};
  for (const auto& x : {one, several}) expect_gradient(f([](auto blocks) { return stack_rows(blocks); }), x);
  const std::vector<int> index{6, 2, 0, -1, 2, 3};
  expect_gradient(f([&](auto blocks) { return gather_rows(blocks, std::span<const int>(index)); }), several);
  Tape<double> tape;
  const auto v = place(tape, several);
  const auto y = gather_rows(std::span<const Var<double>>(v), std::span<const int>(index)).value();
  CHECK(y(0, 2) == v[2].value()(3, 2));
  CHECK(y(1, 1) == v[1].value()(0, 1));
  CHECK(y(3, 0) == 0);
  const std::vector<int> beyond{7};
  CHECK_THROWS_AS(gather_rows(std::span<const Var<double>>(v), std::span<const int>(beyond)), Bug);
}

TEST_CASE("stack_rows differentiates if only a later block needs it") {
  Tape<double> tape;
  const std::vector<Var<double>> v{tape.constant(1, 2, 1), place(tape, {random_matrix(1, 2, 1)})[0]};
  auto y = stack_rows(std::span<const Var<double>>(v));
  CHECK(tape.needs_gradient(y));
  const std::vector<double> g{1, 2, 3, 4};
  tape.backward(y, {g.data(), 2, 2});
  CHECK(tape.gradient(v[1]).data[1] == 4);
}

TEST_CASE("pick") {
  const std::vector<int> row{0, 2, 2, 1, 2}, column{1, 0, 3, 3, 3};
  expect_gradient([&](auto&, const auto& x) { return pick(x[0], std::span<const int>(row), std::span<const int>(column)); },
                  {random_matrix(3, 4, 1)});
  Tape<double> tape;
  const std::vector<int> outside{4, 0, 0, 0, 0};
  CHECK_THROWS_AS(pick(tape.constant(3, 4), std::span<const int>(row), std::span<const int>(outside)), Bug);
}

TEST_CASE("beside_zero: the logits of bits") {
  expect_gradient([](auto&, const auto& x) { return beside_zero(x[0]); }, {random_matrix(3, 2, 1)});
  Tape<double> tape;
  const auto x = place(tape, {random_matrix(3, 2, 1)})[0];
  const auto y = beside_zero(x).value();
  CHECK(y.rows == 6);
  CHECK(y.cols == 2);
  CHECK(y(3, 0) == 0);
  CHECK(y(3, 1) == x.value()(1, 1));
}

TEST_CASE("pick_in_groups: one entry of each row of the groups") {
  const std::vector<int> group{1, 0, 1}, column{1, 0, 1, 1, 0, 1}, wide{3, 0, 1, 2, 0, 1}, outside{2, 0, 1};
  const auto f = [&](const std::vector<int>& which) {
    return
        [&](auto&, const auto& x) { return pick_in_groups(x[0], 2, std::span<const int>(group), std::span<const int>(which)); };
  };
  expect_gradient(f(column), {random_matrix(4, 2, 1)});
  expect_gradient(f(wide), {random_matrix(4, 4, 1)});
  Tape<double> tape;
  const auto x = place(tape, {random_matrix(4, 4, 1)})[0];
  const auto y = pick_in_groups(x, 2, std::span<const int>(group), std::span<const int>(wide));
  CHECK(y.rows() == 3);
  CHECK(y.value()(0, 1) == x.value()(3, 0));
  CHECK(y.value()(1, 0) == x.value()(0, 1));
  CHECK_THROWS_AS(pick_in_groups(x, 2, std::span<const int>(outside), std::span<const int>(wide)), Bug);
  CHECK_THROWS_AS(pick_in_groups(x, 3, std::span<const int>(group), std::span<const int>(wide)), Bug);
  CHECK_THROWS_AS(f(std::vector<int>{4, 0, 0, 0, 0, 0})(tape, std::vector{x}), Bug);
}

TEST_CASE("sums_in_groups: the sums of the picked entries, with their gradients") {
  for (std::size_t S : {2, 3})
    for (std::size_t D : {1, 5, 1100}) {  // also several blocks of columns
      std::vector<int> group{1, 0, 1}, column;
      for (std::size_t c = 0; c < 3 * D; ++c) column.push_back(static_cast<int>((c * c + c / 7) % S));
      const auto x = random_matrix(2 * D, S, 1);
      const auto sums = [&](auto&, const auto& v) {
        return sums_in_groups(v[0], D, std::span<const int>(group), std::span<const int>(column));
      };
      const auto picked = [&](auto&, const auto& v) {
        return row_sums(pick_in_groups(v[0], D, std::span<const int>(group), std::span<const int>(column)));
      };
      if (D < 10) expect_gradient(sums, {x});
      std::vector<double> gradient[2];
      for (bool one : {false, true}) {
        Tape<double> tape;
        const auto v = place(tape, {x});
        const auto y = one ? sums(tape, v) : picked(tape, v);
        const auto weights = random_matrix(3, 1, 2).storage();
        tape.backward(weighted_sum(y, std::span<const double>(weights)));
        const auto g = tape.gradient(v[0]);
        gradient[one].assign(g.data, g.data + g.size());
        gradient[one].insert(gradient[one].end(), y.value().data, y.value().data + 3);
      }
      CHECK(gradient[0] == gradient[1]);
    }
  Tape<double> tape;
  const auto x = place(tape, {random_matrix(4, 3, 1)})[0];
  const std::vector<int> group{0}, outside{2}, column{0, 1}, beyond{0, 3};
  CHECK_THROWS_AS(sums_in_groups(x, 2, std::span<const int>(outside), std::span<const int>(column)), Bug);
  CHECK_THROWS_AS(sums_in_groups(x, 2, std::span<const int>(group), std::span<const int>(beyond)), Bug);
}

TEST_CASE("bag: repeated and missing words, with and without weights") {
  const std::vector<int> tokens{0, 3, -1, 3, 3, 1, -1, -1, -1, 2, 2, 2};
  const std::vector<int> weight{1, 1, -1, 0, 3, 2, 0, 0, 0, 2, 3, 1};  // a padding token may have any weight
  const auto table = random_matrix(5, 3, 1), u = random_matrix(4, 3, 2);
  for (std::size_t words : {1, 3, 4, 12}) {
    expect_gradient([&](auto&, const auto& x) { return bag(x[0], std::span<const int>(tokens), words); }, {table});
    expect_gradient(
        [&](auto& tape, const auto& x) {
          using T = Number<decltype(tape)>;
          const std::vector<T> weights(u.begin(), u.end());  // destroyed before the backward pass
          return bag(x[0], std::span<const int>(tokens), words, BagWeights<T>{{weights.data(), 4, 3}, weight});
        },
        {table});
  }
  for (std::size_t D = 1; D < 40; ++D) {  // whole and incomplete registers
    const auto wide = random_matrix(5, D, 3), factors = random_matrix(4, D, 4);
    Tape<double> tape;
    const MatrixView<const double> rows{factors.data(), 4, D};
    const auto y = bag(place(tape, {wide})[0], std::span<const int>(tokens), 4, BagWeights<double>{rows, weight}).value();
    for (std::size_t n = 0; n < 3; ++n)
      for (std::size_t d = 0; d < D; ++d) {
        double sum = 0;
        for (std::size_t i = 4 * n; i < 4 * n + 4; ++i)
          if (tokens[i] >= 0) sum += factors(weight[i], d) * wide(tokens[i], d);
        CHECK(y(n, d) == doctest::Approx(sum).epsilon(1e-14));
      }
  }
  Tape<double> tape;
  const auto x = tape.constant(5, 3);
  const std::vector<int> outside(tokens.size(), 4);
  const MatrixView<const double> rows{u.data(), 4, 3};
  CHECK_THROWS_AS(bag(x, std::span<const int>(tokens), 3, BagWeights<double>{rows, outside}), Bug);
  CHECK_THROWS_AS(bag(x, std::span<const int>(tokens), 3, BagWeights<double>{rows, std::span(weight).first(3)}), Bug);
}

TEST_CASE("reshape keeps the numbers and their order") {
  for (std::size_t cols : {1, 2, 3, 4, 6, 12})
    expect_gradient([&](auto&, const auto& v) { return reshape(v[0], cols); }, {random_matrix(3, 4, 1)});
  Tape<double> tape;
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  const auto y = reshape(tape.constant({x.data(), 2, 3}), 2).value();
  CHECK((y.rows == 3 && y.cols == 2));
  CHECK(y(1, 0) == 3);
  CHECK(y(2, 1) == 6);
  CHECK_THROWS_AS(reshape(tape.constant({x.data(), 2, 3}), 4), Bug);
}

}  // namespace hardgrad::testing::rearrange_test
