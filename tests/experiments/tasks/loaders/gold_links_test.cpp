// Gold links: the two formats, rejected input, and the task that holds them.
#include "experiments/tasks/loaders/pairs.hpp"

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::gold_links_test {
using namespace tasks;

namespace {
const std::vector<PairLengths> pairs{{3, 2}, {1, 1}, {2, 4}};
}

TEST_CASE("gold links in the Pharaoh format: sure and possible, a line for each pair") {
  Folder folder;
  const auto links = read_gold_links(folder.write("g", "0-0 2?1 0?0\n\n1-3\t0-0\n"), pairs);
  REQUIRE(links.size() == 3);
  CHECK(links[0].sure == std::set<Link>{{0, 0}});
  CHECK(links[0].possible == std::set<Link>{{0, 0}, {2, 1}});
  CHECK(links[1].empty());
  CHECK(links[2].sure == std::set<Link>{{0, 0}, {1, 3}});
}

TEST_CASE("gold links in columns: numbers from 1, NULL is not a link, links are sure unless marked possible") {
  Folder folder;
  const auto links = read_gold_links(folder.write_gz("g.gz", "0003 2 4 P\n1 1 1\n1 0 2 S\n3 1 1 S\n"), pairs);
  CHECK(links[0].sure == std::set<Link>{{0, 0}});
  CHECK(links[0].possible == links[0].sure);
  CHECK(links[1].empty());
  CHECK(links[2].sure == std::set<Link>{{0, 0}});
  CHECK(links[2].possible == std::set<Link>{{0, 0}, {1, 3}});
}

TEST_CASE("gold links that are none are refused with line and column") {
  Folder folder;
  const auto says = says_of(folder, "g", [](const std::string& path) { read_gold_links(path, pairs); });
  CHECK(has(says("0-0 3-0\n\n\n"),
            "g:1:5: a link of source word 3 and target word 0, but the pair has 3 and 2 (numbered from 0)"));
  CHECK(has(says("0-0\n0-1\n\n"), "g:2:1: a link of source word 0 and target word 1"));
  CHECK(has(says("0-0\n0:0\n\n"), "g:2:1: \"0:0\" is not a link; expected \"0-0 1-2 2?3\""));
  CHECK(has(says("0-0 0--1\n\n\n"), "g:1:5: \"0--1\" is not a link"));
  CHECK(has(says("0-0 99999999999-1\n\n\n"), "is not a link"));
  CHECK(has(says("0-0\n\n"), "g: has 2 lines for 3 sentence pairs; line i has the links of pair i"));
  CHECK(has(says("1 1 1\n2 1\n"), "g:2:1: expected \"sentence source target\", optionally with S or P"));
  CHECK(has(says("1 1 1\n1 1 1 Q\n"), "g:2:1: expected"));
  CHECK(has(says("1 1 1 S S\n"), "g:1:1: expected"));
  CHECK(has(says("4 1 1\n"), "g:1:1: sentence 4 of 3, numbered from 1"));
  CHECK(has(says("0 1 1\n"), "g:1:1: sentence 0 of 3"));
  CHECK(has(says("1 4 1\n"), "g:1:3: a link of source word 4 and target word 1, but the pair has 3 and 2 (numbered from 1)"));
  CHECK(has(says("0-0\xff\n"), "g:1:4"));
  CHECK(has(says(""), "g: "));
  CHECK(has(says("\n\n"), "g: holds no link"));
  CHECK(has(says(std::string(1 << 21, '1') + "\n"), "g:1: the line has more than 1048576 bytes"));
}

TEST_CASE("damaged gold links are read or refused in one line") {
  for (const std::string whole : {"0-0 2?1\n0-0\n1-3 0-0 1?2\n", "1 1 1 S\n1 3 2 P\n2 1 1\n3 2 4\n"})
    read_damaged(whole, 5, [](const std::string& path) {
      const auto links = read_gold_links(path, pairs);
      for (std::size_t b = 0; b < links.size(); ++b)
        for (const auto& [source, target] : links[b].possible) CHECK((source < pairs[b].source && target < pairs[b].target));
    });
}

}  // namespace hardgrad::testing::gold_links_test
