// Atomic writing: a file is written completely or not at all.
#include "experiments/storage/atomic_file.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>
#include <utime.h>

#include <algorithm>
#include <thread>

#include "core/support/error.hpp"
#include "experiments/storage/process.hpp"
#include "folder.hpp"
#include "tests/support/dead_process.hpp"

namespace hardgrad::testing::atomic_file_test {
using namespace storage;

TEST_CASE("a file is written, read and replaced") {
  Folder folder;
  write_file(folder / "a", "one");
  CHECK(read_file(folder / "a") == "one");
  write_file(folder / "a", std::string("t\0wo", 4));
  CHECK(read_file(folder / "a") == std::string("t\0wo", 4));
  CHECK(folder.files() == 1);
}

TEST_CASE("a file that comes and goes is read, or is not there") {
  Folder folder;
  const auto path = folder / "claim";
  CHECK(read_if_there(path) == std::nullopt);
  CHECK(message<InputError>([&] { read_file(path); }).ends_with("claim: cannot be read: No such file or directory"));
  std::jthread other([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      write_new_file(path, "text");
      ::unlink(path.c_str());
    }
  });
  int there = 0, absent = 0;
  while (there < 10000 || absent < 10000) {
    const auto text = read_if_there(path);  // does not throw
    ++(text ? there : absent);
    if (text) CHECK(*text == "text");
  }
}

TEST_CASE("writing through a symbolic link keeps the link") {
  Folder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_symlink("real/target", folder / "link");
  write_file(folder / "link", "through");  // a dangling link: its target is created
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_file(folder / "real/target") == "through");
  write_file(folder / "link", "again");
  CHECK(read_file(folder / "real/target") == "again");
  std::filesystem::create_symlink("circle", folder / "circle");
  CHECK(message<UsageError>([&] { write_file(folder / "circle", "x"); }).find("circle") != std::string::npos);
}

TEST_CASE("paths that cannot be written are usage errors of one line") {
  Folder folder;
  write_file(folder / "file", "x");
  std::filesystem::create_directory(folder / "sub");
  const std::string bad[] = {folder / "file/below",
                             folder / "missing/file",
                             folder / "sub",
                             folder / "sub/",
                             "/proc/hardgrad.h5",
                             "/dev/full",
                             "/dev/null"};
  for (const auto& path : bad) {
    const auto words = message<UsageError>([&] { write_file(path, "x"); });
    INFO(path << " -> " << words);
    CHECK(words.find(path) == 0);
    CHECK(words.find('\n') == std::string::npos);
  }
  CHECK(message<UsageError>([&] { write_file(folder / "missing/file", "x"); }).find("create it first") != std::string::npos);
  CHECK(folder.files() == 2);
}

TEST_CASE("a full disk leaves the old file and nothing of the new one") {
  Folder folder;
  write_file(folder / "a", "old");
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto* handler = ::signal(SIGXFSZ, SIG_IGN);
  struct rlimit tight = before;
  tight.rlim_cur = 10000;
  ::setrlimit(RLIMIT_FSIZE, &tight);
  const auto words = message<UsageError>([&] { write_file(folder / "a", std::string(50000, 'x')); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  CHECK(words.find("largest size") != std::string::npos);
  CHECK(read_file(folder / "a") == "old");
  CHECK(folder.files() == 1);
}

TEST_CASE("half-written files of killed processes are distinguished from files being written") {
  Folder folder;
  const auto dead = name_of_the_dead();
  CHECK(dead != this_process());
  CHECK(life_of(dead) == Life::dead);
  CHECK(life_of(this_process()) == Life::alive);
  auto later = this_process();  // our process id, used earlier by another process
  later.back() = later.back() == '1' ? '2' : '1';
  CHECK(life_of(later) == Life::dead);
  for (const char* odd : {"", "x", "x-1", "x-1-2", "x--1-2", "0123456789abcdef-1-2"}) CHECK(life_of(odd) == Life::elsewhere);

  const auto put = [&](const std::string& file, const std::string& process, bool old) {
    const auto path = folder / ("." + file + "." + process + "." + random_name() + ".partial");
    spill(path, "half");
    const struct utimbuf long_ago { 1, 1 };
    if (old) ::utime(path.c_str(), &long_ago);
  };
  const std::string elsewhere = "0123456789abcdef-1-2";
  put("a.h5", this_process(), true);  // a slow process may still write
  put("a.h5", dead, false);
  put("b.h5", dead, false);
  put("a.h5", elsewhere, false);
  put("a.h5", elsewhere, true);
  put("a.h5", "1234", true);  // named as in older releases
  spill(folder / "c.partial", "a file of the user");
  write_file(folder / "a.h5", "whole");
  const auto all = stale_files(folder.string());
  CHECK(all.size() == 6);
  CHECK(std::count_if(all.begin(), all.end(), [](const auto& l) { return l.abandoned && l.bytes == 4; }) == 4);
  CHECK(stale_files(folder.string(), "a.h5").size() == 5);
  CHECK(remove_stale_files(folder.string(), "a.h5") == 3);
  CHECK(remove_stale_files(folder.string()) == 1);
  CHECK(folder.files() == 4);
  CHECK(stale_files(folder / "none").empty());
}

TEST_CASE("an unreadable file is an input error") {
  Folder folder;
  CHECK(message<InputError>([&] { read_file(folder / "none"); }).find("No such file") != std::string::npos);
  CHECK(message<InputError>([&] { read_file(folder.string()); }).find("is a folder") != std::string::npos);
  CHECK(message<InputError>([&] { read_file("/dev/zero"); }).find("not a regular file") != std::string::npos);
}

}  // namespace hardgrad::testing::atomic_file_test
