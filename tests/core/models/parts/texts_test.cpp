#include "core/models/parts/texts.hpp"

#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::texts_test {
namespace {

constexpr std::size_t words = 3;
// Three stories of 3, 1 and 4 texts; texts past a story's end are not read.
const std::vector<int> tokens{1, 2, 0, 3, 4, 1, 1, 2, 0, 9, 9, 9,  //
                              3, 4, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9,  //
                              2, 1, 0, 0, 0, 0, 3, 4, 1, 0, 0, 0};
const std::vector<std::size_t> read{0, 1, 2, 4, 8, 9, 10, 11};
const Items stories(std::vector<int>{3, 1, 4});

template <class T>
Texts<T> made(std::size_t D, bool position_encoding) {
  return {shaped<int>({3, 4, words}, tokens), stories, words, D, position_encoding};
}

/// One entry of m of a text, from the definition.
double by_hand(const Matrix& table, std::size_t text, std::size_t d, bool position_encoding) {
  std::vector<int> real;
  for (std::size_t w = 0; w < words; ++w)
    if (const int token = tokens[text * words + w]; token != 0) real.push_back(token);
  double sum = 0;
  const auto J = static_cast<double>(real.size()), D = static_cast<double>(table.shape(1));
  for (std::size_t i = 0; i < real.size(); ++i) {
    const double j = static_cast<double>(i + 1), place = static_cast<double>(d + 1);
    sum += (position_encoding ? (1 - j / J) - place / D * (1 - 2 * j / J) : 1.0) * table(real[i], d);
  }
  return sum;
}

}  // namespace

TEST_CASE("texts: sums of word vectors, of each distinct text once, and their gradients") {
  const std::size_t D = 20;
  const auto table = random_matrix(5, D, 1);
  for (bool position_encoding : {true, false}) {
    const auto texts = made<double>(D, position_encoding);
    CHECK(texts.distinct() == 4);  // also that of no words
    Tape<double> tape;
    const auto sums = texts.sums(place(tape, {table})[0]);
    CHECK(sums.rows() == read.size());
    CHECK(sums.rows_of_addends() == 4);
    const auto m = Var<double>(sums).value();
    for (std::size_t r = 0; r < read.size(); ++r)
      for (std::size_t d = 0; d < D; ++d)
        CHECK(m(r, d) == doctest::Approx(by_hand(table, read[r], d, position_encoding)).epsilon(1e-14));
    expect_gradient(
        [&](auto& tape, const auto& x) {
          using T = Number<decltype(tape)>;
          return Var<T>(made<T>(D, position_encoding).sums(x[0]));
        },
        {table});
  }
}

TEST_CASE("texts: a text's sum does not depend on the others, to the bit") {
  const std::size_t D = 7;
  const auto table = random_matrix(5, D, 2);
  Tape<float> tape;
  const auto rows = place(tape, {table})[0];
  const Var<float> all = made<float>(D, true).sums(rows);
  for (std::size_t r = 0; r < read.size(); ++r) {
    const auto first = tokens.begin() + static_cast<std::ptrdiff_t>(read[r] * words);
    const Texts<float> one(shaped<int>({1, 1, words}, std::vector<int>(first, first + words)), Items(1, 1), words, D, true);
    const Var<float> alone = one.sums(rows);
    CHECK(std::equal(alone.value().data, alone.value().data + D, all.value().row(r)));
  }
}

TEST_CASE("texts: many texts, nearly all distinct") {
  std::vector<int> many;
  for (int i = 0; i < 500; ++i) many.insert(many.end(), {1 + i % 23, 1 + i / 23, 1 + i % 7});
  many.insert(many.end(), {1, 1, 1, 2, 1, 2});  // the first two again
  const Texts<double> texts(shaped<int>({1, 502, words}, many), Items(1, 502), words, 2, false);
  CHECK(texts.distinct() == 500);
  CHECK_THROWS_AS(Texts<double>(zeros<int>({1, 1, 0}), Items(1, 1), 0, 2, false), Bug);
}

}  // namespace hardgrad::testing::texts_test
