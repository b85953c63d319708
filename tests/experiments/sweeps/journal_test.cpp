// The journal stays readable after its writer is killed.
#include "experiments/sweeps/folder.hpp"

#include <sys/resource.h>
#include <nlohmann/json.hpp>

#include <csignal>

#include <doctest/doctest.h>

#include "files.hpp"

namespace hardgrad::testing::journal_test {
using namespace measurement;
using namespace tasks;
using namespace training;
using namespace sweeps;

TEST_CASE("a line that exceeds the file size limit is an error, and the next line is intact") {
  TestFolder folder;
  const auto path = folder / "journal.jsonl";
  Journal journal(path);
  journal.append({{"event", "start"}});
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);  // as the program does
  const rlimit tight{get(path).size() + 10, limit.rlim_max};
  setrlimit(RLIMIT_FSIZE, &tight);
  CHECK_THROWS_WITH_AS(journal.append({{"event", "end"}}),
                       (path + ": cannot be written: the file would exceed the largest size allowed").c_str(), UsageError);
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, before);
  CHECK(Journal::read(path).size() == 1);
  Journal(path).append({{"event", "end"}});
  CHECK(Journal::read(path).size() == 2);
}

TEST_CASE("a truncated last line is skipped, and ended before the next is appended") {
  TestFolder folder;
  const auto path = folder / "journal.jsonl";
  CHECK(Journal::read(path).empty());
  {
    Journal journal(path);
    journal.append({{"event", "start"}, {"cell", "a"}});
    journal.append({{"event", "end"}, {"cell", "a"}});
  }
  const auto whole = get(path);
  for (std::size_t torn = 0; torn < 40; ++torn) {
    put(path, whole.substr(0, whole.size() - torn));
    CHECK(Journal::read(path).size() == (torn <= 1 ? 2 : 1));  // a missing line break loses no line
  }
  put(path, whole.substr(0, whole.size() - 5));
  {
    Journal journal(path);
    journal.append({{"event", "start"}, {"cell", "b"}});
  }
  const auto events = Journal::read(path);
  REQUIRE(events.size() == 2);
  CHECK(events[1].at("cell") == "b");
  CHECK(events[1].contains("time"));
}

TEST_CASE("lines of another form are skipped, and invalid bytes are harmless") {
  TestFolder folder;
  const auto path = folder / "journal.jsonl";
  put(path, "[1, 2]\n\xff\xfe\n\n{\"event\": \"run\"}\nnonsense\n");
  CHECK(Journal::read(path).size() == 1);
  Journal journal(path);
  journal.append({{"reason", "not text: \xff"}});
  CHECK(Journal::read(path).size() == 2);
}

TEST_CASE("a path that cannot be written is a usage error") {
  CHECK_THROWS_AS(Journal("/nonexistent/journal.jsonl"), UsageError);
}

}  // namespace hardgrad::testing::journal_test
