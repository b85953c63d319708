// Atomic writing: all or nothing, whatever stands in the way.
#include "experiments/storage/atomic_file.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include "core/support/error.hpp"
#include "folder.hpp"

using namespace hardgrad;
using namespace hardgrad::testing;

TEST_CASE("a file is written, read and replaced") {
  Folder folder;
  write_file(folder / "a", "one");
  CHECK(read_file(folder / "a") == "one");
  write_file(folder / "a", std::string("t\0wo", 4));
  CHECK(read_file(folder / "a") == std::string("t\0wo", 4));
  CHECK(folder.files() == 1);
}

TEST_CASE("a symbolic link keeps pointing where it did") {
  Folder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_symlink("real/target", folder / "link");
  write_file(folder / "link", "through");  // a dangling one is filled
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(read_file(folder / "real/target") == "through");
  write_file(folder / "link", "again");
  CHECK(read_file(folder / "real/target") == "again");
  std::filesystem::create_symlink("circle", folder / "circle");
  CHECK(message<UsageError>([&] { write_file(folder / "circle", "x"); }).find("circle") != std::string::npos);
}

TEST_CASE("places that cannot be written are usage errors of one line") {
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
  CHECK(message<UsageError>([&] { write_file(folder / "missing/file", "x"); }).find("make it first") != std::string::npos);
  CHECK(folder.files() == 2);
}

TEST_CASE("a disk that fills up leaves the old file and no trace of the new") {
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

TEST_CASE("what cannot be read is an input error") {
  Folder folder;
  CHECK(message<InputError>([&] { read_file(folder / "none"); }).find("No such file") != std::string::npos);
  CHECK(message<InputError>([&] { read_file(folder.string()); }).find("is a folder") != std::string::npos);
  CHECK(message<InputError>([&] { read_file("/dev/zero"); }).find("not a regular file") != std::string::npos);
}
