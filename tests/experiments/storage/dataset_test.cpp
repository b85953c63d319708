// Labelled datasets are written to a file and read back.
#include "experiments/storage/dataset.hpp"

#include <doctest/doctest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>

#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "folder.hpp"
#include "same.hpp"

namespace hardgrad::testing::dataset_test {
using namespace storage;

namespace {

Dataset every_type() {
  Dataset data;
  data.axes = {{"run", std::vector<std::int64_t>{5, -7}, {{"long_name", "the run"}}},
               {"group", std::vector<std::string>{"a", "", "gr\xC3\xBC\xC3\x9F"}},
               {"x", std::vector<double>{0.5}}};
  data.variables = {
      {"real", {"run", "group"}, std::vector<double>{1, -0.0, 1e-300, NAN, INFINITY, 6}, described("s", "seconds")},
      {"single", {"x"}, std::vector<float>{0.1f}},
      {"whole", {"run"}, std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), 3}},
      {"small", {"group"}, std::vector<std::int32_t>{-1, 0, 1}},
      {"flag", {"run"}, std::vector<std::uint8_t>{0, 255}, flags("state", {"ok", "failed"})},
      {"words", {"group", "run"}, std::vector<std::string>{"a", "b\nc", "", "\"", "e", "f"}},
      {"scalar", {}, std::vector<std::string>{"[toml]\n"}},
      {"number", {}, std::vector<double>{2.5}}};
  data.attributes = {{"z", "text"},
                     {"a", 1.5},
                     {"n", std::int64_t{-3}},
                     {"list", std::vector<std::string>{"p", ""}},
                     {"reals", std::vector<double>{1, 2}},
                     {"empty", ""}};
  return data;
}

Archive archive_of(Dataset data) {
  Archive archive{.kind = "test", .note = "test note"};
  archive.groups.push_back({"", std::move(data)});
  return archive;
}

}  // namespace

TEST_CASE("every type survives a file, plain and compressed") {
  Folder folder;
  for (bool compress : {false, true}) {
    auto archive = archive_of(every_type());
    archive.groups.push_back({"inner", every_type()});
    write_archive(folder / "f.h5", archive, compress);
    const auto back = read_archive(folder / "f.h5", "test");
    CHECK(same(back, archive));
    CHECK(back.note == "test note");
    const auto& data = back.group("inner");
    CHECK(data.variables.size() == 8);
    CHECK(data.variable("real")->axes == std::vector<std::string>{"run", "group"});
    CHECK(std::isnan(data.values<double>("real")->at(3)));
    CHECK(std::signbit(data.values<double>("real")->at(1)));
    CHECK(data.values<std::int64_t>("whole")->at(0) == std::numeric_limits<std::int64_t>::min());
    CHECK(*data.values<std::string>("words") == *every_type().values<std::string>("words"));
    CHECK(std::get<std::vector<std::string>>(data.axis("group")->labels)[2] == "gr\xC3\xBC\xC3\x9F");
    CHECK(text(data.variable("flag")->attributes, "flag_meanings") == "ok failed");
    CHECK(text(data.attributes, "z") == "text");
    CHECK(std::get<std::vector<std::string>>(*find(data.attributes, "list")) == std::vector<std::string>{"p", ""});
    CHECK(number(data.attributes, "a") == 1.5);
    CHECK(read_seal(folder / "f.h5").note == "test note");
  }
}

namespace {

// Arrays of several blocks: numbers, texts, rows of several numbers; with an axis of the root in a group.
Archive large() {
  Dataset data;
  data.axes = {{"run", count_up(5000)}, {"step", count_up(120)}};
  std::vector<double> numbers(5000 * 120);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i % 7);
  for (std::size_t i = 0; i < 5000; ++i) words.push_back(std::to_string(i));
  data.variables = {{"loss", {"run", "step"}, numbers}, {"turned", {"step", "run"}, numbers}, {"name", {"run"}, words}};
  auto archive = archive_of(data);
  for (auto& axis : data.axes) axis.inherited = true;
  archive.groups.push_back({"inner", std::move(data)});
  return archive;
}

}  // namespace

TEST_CASE("an outline is the file without its values") {
  Folder folder;
  const auto path = folder / "f.h5";
  for (bool compress : {false, true})
    for (auto archive : {archive_of(every_type()), large()}) {
      write_archive(path, archive, compress);
      const auto whole = read_archive(path, "test"), found = outline(path);
      CHECK(found.note == whole.note);
      REQUIRE(found.groups.size() == whole.groups.size());
      for (std::size_t g = 0; g < found.groups.size(); ++g) {
        auto left = whole.groups[g];
        for (auto& variable : left.data.variables) variable.values = {};
        CHECK(same(left, found.groups[g]));
      }
    }
}

TEST_CASE("an outline needs no memory for values") {
  const auto before = mallinfo2().uordblks + mallinfo2().hblkhd;
  const std::string control(1 << 20, 'c');
  if (mallinfo2().uordblks + mallinfo2().hblkhd - before < control.size()) {
    MESSAGE("skipped: this allocator does not report allocated memory");
    return;
  }
  Folder folder;
  const auto path = folder / "f.h5";
  Dataset data;
  ::malloc_trim(0);
  const auto runs = (1 << 13) + (mallinfo2().fordblks >> 13);  // 64 MB more than earlier tests may have left to be used again
  data.axes = {{"run", count_up(runs)}, {"step", count_up(1 << 10)}};
  data.variables = {{"loss", {"run", "step"}, std::vector<double>(runs << 10)}};
  write_archive(path, archive_of(std::move(data)), true);
  const auto succeeds = [&](auto read) {  // in a process that may have 32 MB more than this one
    const auto child = ::fork();
    if (child == 0) {
      std::size_t pages = 0;
      std::ifstream("/proc/self/statm") >> pages;
      const auto most = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + (std::size_t{1} << 25);
      const rlimit limit{most, most};
      ::setrlimit(RLIMIT_AS, &limit);
      try {
        read();
      } catch (const InputError&) {
        ::_exit(1);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0;
  };
  CHECK(succeeds([&] { outline(path); }));
  CHECK_FALSE(succeeds([&] { read_archive(path, ""); }));
}

TEST_CASE("equality of archives detects every kind of change") {
  const auto changed = [&](auto&& change) {
    auto data = every_type();
    change(data);
    return !same(archive_of(data), archive_of(every_type()));
  };
  CHECK_FALSE(changed([](Dataset&) {}));  // unchanged: must be equal
  CHECK(changed([](Dataset& d) { std::get<std::vector<double>>(d.variables[0].values)[1] = 0.0; }));
  CHECK(changed([](Dataset& d) { std::get<std::vector<std::string>>(d.variables[5].values)[0] = "A"; }));
  CHECK(changed([](Dataset& d) { std::swap(d.variables[1], d.variables[2]); }));
  CHECK(changed([](Dataset& d) { d.variables[0].name = "unreal"; }));
  CHECK(changed([](Dataset& d) { d.variables[0].attributes[0].second = "h"; }));
  CHECK(changed([](Dataset& d) { std::get<std::vector<std::int64_t>>(d.axes[0].labels)[0] = 6; }));
  CHECK(changed([](Dataset& d) { d.attributes.pop_back(); }));
}

TEST_CASE("text that is not UTF-8 is made readable, not rejected") {
  Folder folder;
  Dataset data;
  data.variables = {{"log", {}, std::vector<std::string>{std::string("a\0b\xFF\xC3(", 6)}}};
  data.attributes = {{"reason", "\xE2\x82"}};
  write_archive(folder / "f.h5", archive_of(data), false);
  const auto back = read_archive(folder / "f.h5", "test");
  CHECK(back.group("").values<std::string>("log")->at(0) ==
        "a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD\xEF\xBF\xBD(");
}

TEST_CASE("inconsistent datasets are bugs") {
  auto data = every_type();
  data.variables[0].axes = {"run"};
  CHECK_THROWS_AS(data.validate(), Bug);
  data = every_type();
  data.variables[0].name = "run";
  CHECK_THROWS_AS(data.validate(), Bug);
  data = every_type();
  data.variables[0].axes = {"run", "nowhere"};
  CHECK_THROWS_AS(data.validate(), Bug);
  data = every_type();
  data.axes.push_back({"none", std::vector<double>{}});
  CHECK_THROWS_AS(data.validate(), Bug);
  data = every_type();
  data.variables[0].name = "a/b";
  CHECK_THROWS_AS(data.validate(), Bug);
}

TEST_CASE("many threads write and read at once") {
  Folder folder;
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const auto path = folder / ("f" + std::to_string(t));
        write_archive(path, archive_of(every_type()), i % 2);
        good += same(read_archive(path, "test"), archive_of(every_type()));
        good += message<InputError>([&] { read_archive(folder / "none", ""); }) != "";
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(good == 80);
}

}  // namespace hardgrad::testing::dataset_test
