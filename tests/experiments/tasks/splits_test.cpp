// Splits depend on groups and the key, not on the order.
#include "experiments/tasks/listed.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace hardgrad::testing::splits_test {
using namespace tasks;

TEST_CASE("a group is in one split, and order does not matter") {
  std::vector<std::string> groups;
  for (int i = 0; i < 3000; ++i) groups.push_back("group " + std::to_string(i % 1000));
  const auto splits = split_by_group(groups, 0.1, 0.2, Key(1));
  std::map<std::string, Split> of;
  for (std::size_t i = 0; i < groups.size(); ++i) CHECK(of.try_emplace(groups[i], splits[i]).first->second == splits[i]);
  auto backwards = groups;
  std::reverse(backwards.begin(), backwards.end());
  auto reversed = split_by_group(backwards, 0.1, 0.2, Key(1));
  std::reverse(reversed.begin(), reversed.end());
  CHECK(reversed == splits);
  CHECK(split_by_group(groups, 0.1, 0.2, Key(2)) != splits);
  const auto parts = members(splits, Key(1));
  CHECK(parts[0].size() + parts[1].size() + parts[2].size() == 3000);
  CHECK(std::abs(static_cast<double>(parts[1].size()) / 3000 - 0.1) < 0.04);  // 4 standard deviations of 1000 groups
  CHECK(std::abs(static_cast<double>(parts[2].size()) / 3000 - 0.2) < 0.06);
}

TEST_CASE("a split is in a keyed random order, so its first examples are representative") {
  const auto train = members(std::vector<Split>(2000, Split::train), Key(1))[0];
  CHECK(train == members(std::vector<Split>(2000, Split::train), Key(1))[0]);
  CHECK(train != members(std::vector<Split>(2000, Split::train), Key(2))[0]);
  double mean = 0;
  for (int i = 0; i < 200; ++i) mean += train[i] / 200.0;
  CHECK(std::abs(mean - 999.5) < 5 * 577.35 / std::sqrt(200));
}

TEST_CASE("with few data no requested split is empty, and a share of 0 is empty") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto three = members(split_by_group({"a", "b", "c"}, 0.01, 0.01, Key(seed)), Key(1));
    for (const auto& part : three) CHECK(part.size() == 1);
    CHECK(members(split_by_group({"a"}, 0.01, 0.01, Key(seed)), Key(1))[0].size() == 1);
    CHECK(members(split_by_group({"a", "b", "c"}, 0, 0, Key(seed)), Key(1))[0].size() == 3);
  }
}

TEST_CASE("a group too large for a split goes to training") {
  std::vector<std::string> groups(500, "large");
  for (int i = 0; i < 500; ++i) groups.push_back("small " + std::to_string(i));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto splits = split_by_group(groups, 0.2, 0.2, Key(seed));
    CHECK(splits[0] == Split::train);
    CHECK(split_by_group({"two", "two", "one"}, 0.01, 0, Key(seed))[2] == Split::heldout);
  }
}

TEST_CASE("pairs that share a side, directly or through other pairs, are one group") {
  const Sides first{"d", "c", "b", "x", "y"}, second{"1", "1", "x", "2", "3"};
  CHECK(groups_by_either(first, second) == std::vector<std::string>{"c", "c", "b", "b", "y"});
  CHECK(groups_by_either({"c", "b", "b", "a"}, {"1", "1", "2", "2"}) == std::vector<std::string>(4, "a"));
  CHECK(groups_by_either({"a", "b"}, {"1", "2"}) == std::vector<std::string>{"a", "b"});  // unlinked: named by the first
}

TEST_CASE("the overlap of a split with training is counted") {
  const Sides first{"a", "b", "c", "d"}, second{"1", "1", "2", "a"};
  const std::vector<Split> splits{Split::train, Split::heldout, Split::test, Split::test};
  CHECK(overlap(first, second, first, splits) ==
        "2 of the 3 held out or to test share a side with training; largest group that is kept together: 1");
}

}  // namespace hardgrad::testing::splits_test
