// BLEU on examples computed by hand.
#include "core/support/text_metrics.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace hardgrad::testing::bleu_test {

TEST_CASE("clipping: `the` seven times matches twice (Papineni et al. 2002, example 2)") {
  std::vector<double> sums;
  add_bleu(std::vector<int>(7, 10), std::vector<int>{10, 4, 5, 6, 10, 7}, -1, sums);
  CHECK(sums[0] == 2);
  CHECK(sums[4] == 7);
  CHECK(bleu(sums) == 0);
}

TEST_CASE("two sentences by hand") {
  std::vector<double> sums;
  // a b c d e / a b c d f: 4 of 5, 3 of 4, 2 of 3, 1 of 2
  add_bleu(std::vector<int>{11, 12, 13, 14, 15}, std::vector<int>{11, 12, 13, 14, 16}, -1, sums);
  // a b c / a b c d: 3 of 3, 2 of 2, 1 of 1, 0 of 0
  add_bleu(std::vector<int>{11, 12, 13}, std::vector<int>{11, 12, 13, 14}, -1, sums);
  const double precisions = (7.0 / 8) * (5.0 / 6) * (3.0 / 4) * (1.0 / 2);
  CHECK(bleu(sums) == doctest::Approx(std::exp(1 - 9.0 / 8) * std::pow(precisions, 0.25)).epsilon(1e-12));
}

TEST_CASE("a perfect match is 1, longer output has no bonus, an empty corpus is NaN, unknown words never match") {
  std::vector<double> same, longer, unknown;
  CHECK(std::isnan(bleu(same)));
  add_bleu(std::vector<int>{4, 5, 6, 7}, std::vector<int>{4, 5, 6, 7}, 1, same);
  CHECK(bleu(same) == doctest::Approx(1));
  add_bleu(std::vector<int>{4, 5, 6, 7, 8}, std::vector<int>{4, 5, 6, 7}, 1, longer);
  CHECK(bleu(longer) == doctest::Approx(std::pow(4.0 / 5 * 3 / 4 * 2 / 3 * 1 / 2, 0.25)));
  add_bleu(std::vector<int>{4, 1, 6, 7}, std::vector<int>{4, 1, 6, 7}, 1, unknown);
  CHECK(unknown[0] == 3);
  CHECK(unknown[1] == 1);
  std::vector<double> empty;
  add_bleu({}, std::vector<int>{4}, 1, empty);
  CHECK(bleu(empty) == 0);
}

TEST_CASE("a sentence's BLEU is smoothed: by hand, 1 for the reference, positive with one right word") {
  const auto of = [](std::vector<int> answer, std::vector<int> reference) { return sentence_bleu(answer, reference); };
  CHECK(of({4}, {4}) == doctest::Approx(1));
  CHECK(of({4, 5, 6, 7, 8}, {4, 5, 6, 7, 8}) == doctest::Approx(1));
  // 2 of 3 words, (0 + 1) of (2 + 1) pairs, (0 + 1) of (1 + 1) triples, (0 + 1) of (0 + 1)
  CHECK(of({4, 9, 6}, {4, 5, 6}) == doctest::Approx(std::pow(2.0 / 3 * 1 / 3 * 1 / 2, 0.25)));
  CHECK(of({4, 5}, {4, 5, 6}) == doctest::Approx(std::exp(1 - 3.0 / 2)));
  CHECK(of({9}, {4, 5}) == 0);
  CHECK(of({}, {4}) == 0);
  CHECK(of({}, {}) == 1);
  CHECK(of({4}, {}) == 0);
}

}  // namespace hardgrad::testing::bleu_test
