// Plain, gzipped, damaged and hostile files.
#include "experiments/tasks/loaders/input_file.hpp"

#include "core/support/machine.hpp"
#include "experiments/tasks/loaders/arrays.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::input_file_test {
using namespace tasks;

namespace {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool shadowed = true;  // a sanitizer's shadow memory counts as memory
#else
constexpr bool shadowed = false;
#endif

std::string text_refusal(const Folder& folder, const std::string& path) {
  return refusal(folder, [&] { read_text(path); });
}
}  // namespace

TEST_CASE("plain and gzipped text read the same, CRLF, BOM and a missing last newline do not matter") {
  Folder folder;
  const std::vector<std::string> lines = {"one", "", "zw\xC3\xB6lf"};
  for (const std::string text : {"one\n\nzw\xC3\xB6lf\n", "one\r\n\r\nzw\xC3\xB6lf\r\n", "\xEF\xBB\xBFone\n\nzw\xC3\xB6lf"}) {
    CHECK(read_text(folder.write("a.txt", text)).lines == lines);
    CHECK(read_text(folder.write_gz("a.txt.gz", text)).lines == lines);
  }
}

TEST_CASE("missing files, folders, empty files and wrong names are rejected") {
  Folder folder;
  CHECK(has(text_refusal(folder, folder / "none.txt"), "none.txt: there is no such file"));
  CHECK(has(text_refusal(folder, folder.path()), "is a folder"));
  CHECK(text_refusal(folder, folder.write("empty.txt", "")) == "empty.txt: is empty");
  CHECK(text_refusal(folder, folder.write("bom.txt", "\xEF\xBB\xBF")) == "bom.txt: is empty");
  CHECK(text_refusal(folder, folder.write_gz("empty.gz", "")) == "empty.gz: is empty");
  CHECK(has(text_refusal(folder, folder.write("plain.gz", "hello\n")), "is named .gz but is not gzip"));
  CHECK(has(text_refusal(folder, folder.write("zero.gz", "")), "is named .gz but is not gzip"));
}

TEST_CASE("a gzip file truncated anywhere, or with a flipped bit, is rejected") {
  Folder folder;
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 10007) + "\n";
  const auto whole = bytes_of(folder.write_gz("whole.gz", text));
  for (std::size_t cut :
       {std::size_t{3}, std::size_t{12}, whole.size() / 2, whole.size() - 9, whole.size() - 4, whole.size() - 1}) {
    CAPTURE(cut);
    CHECK(has(text_refusal(folder, folder.write("cut.gz", whole.substr(0, cut))), "the gzip file is truncated"));
  }
  auto damaged = whole;
  damaged[damaged.size() / 2] ^= 0x10;
  CHECK(has(text_refusal(folder, folder.write("damaged.gz", damaged)), "damaged.gz: cannot be read: "));
  CHECK(read_text(folder.write("whole.gz", whole)).lines.size() == 20000);
}

TEST_CASE("a file that needs more memory than allowed is rejected before it is allocated") {
  Folder folder;
  const auto bomb = folder.write_gz("bomb.gz", std::string(20'000'000, '\n'));  // 20 kB, 660 MB of empty lines
  CHECK(bytes_of(bomb).size() < 100'000);
  forget_peak();
  const auto before = peak_resident_bytes();
  CHECK(text_refusal(folder, bomb) ==
        "bomb.gz: its lines take more than 512 MB: is it damaged? If not, split it, or raise the limit: "
        "HARDGRAD_INPUT_LIMIT=2048");
  if (!shadowed) CHECK(peak_resident_bytes() - before < 64'000'000);
  std::string header;  // of 1,000 images of 1,000 x 1,000 pixels, all present: a megabyte of zeros
  for (unsigned n : {0x803u, 1000u, 1000u, 1000u})
    for (int shift : {24, 16, 8, 0}) header += static_cast<char>(n >> shift);
  CHECK(has(refusal(folder, [&] { read_idx_images(folder.write("big.idx", header)); }),
            "the header promises 1000 images of 1000x1000"));

  const auto small = folder.write("small.txt", std::string(40'000, '\n'));  // 1.3 MB
  CHECK(read_text(small).lines.size() == 40'000);
  setenv("HARDGRAD_INPUT_LIMIT", "1", 1);
  CHECK(has(text_refusal(folder, small), "more than 1 MB"));
  setenv("HARDGRAD_INPUT_LIMIT", "2", 1);
  CHECK(read_text(small).lines.size() == 40'000);
  for (const char* bad : {"0", "-1", "x", "1.5", "99999999999999999999"}) {
    setenv("HARDGRAD_INPUT_LIMIT", bad, 1);
    CHECK_THROWS_AS(input_limit(), UsageError);
  }
  unsetenv("HARDGRAD_INPUT_LIMIT");
}

TEST_CASE("text that is not UTF-8 is rejected with line and column") {
  Folder folder;
  CHECK(has(text_refusal(folder, folder.write("latin.txt", "gut\nsch\xF6n\n")), "latin.txt:2:4: byte 0xF6 is not UTF-8"));
  CHECK(has(text_refusal(folder, folder.write("wide.txt", std::string("h\0i\0", 4))), "wide.txt:1:2: a zero byte"));
  CHECK(has(text_refusal(folder, folder.write("utf16.txt", std::string("\xFF\xFEh\0", 4))), "utf16.txt:1:1: byte 0xFF"));
  const auto text = folder.write("long.txt", std::string(3 << 20, 'x') + "yz\n");
  CHECK(text_refusal(folder, text) ==
        "long.txt:1: the line has more than 1048576 bytes: is this a text file? If so, raise the limit: "
        "HARDGRAD_INPUT_LIMIT=2048");
  setenv("HARDGRAD_INPUT_LIMIT", "2048", 1);
  CHECK(read_text(text).lines.at(0).size() == (3 << 20) + 2);
  unsetenv("HARDGRAD_INPUT_LIMIT");
}

TEST_CASE("strict UTF-8") {
  CHECK_FALSE(first_invalid_utf8("abc \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80"));
  CHECK(first_invalid_utf8("a\x80") == 1);             // a lone continuation byte
  CHECK(first_invalid_utf8("\xC0\xAF") == 0);          // overlong
  CHECK(first_invalid_utf8("\xE0\x80\xAF") == 0);      // overlong
  CHECK(first_invalid_utf8("\xED\xA0\x80") == 0);      // surrogate
  CHECK(first_invalid_utf8("\xF4\x90\x80\x80") == 0);  // beyond U+10FFFF
  CHECK(first_invalid_utf8("ab\xE2\x82") == 2);        // truncated
  CHECK(first_invalid_utf8("\xE2\x28\xA1") == 0);
}

TEST_CASE("a relative path is also searched below HARDGRAD_DATA") {
  Folder folder;
  folder.write("hardgrad-found.txt", "x\n");
  const char* before = std::getenv("HARDGRAD_DATA");
  const std::string kept = before ? before : "";
  setenv("HARDGRAD_DATA", folder.path().c_str(), 1);
  CHECK(find_input("hardgrad-found.txt") == folder / "hardgrad-found.txt");
  CHECK(find_input("hardgrad-lost.txt") == "hardgrad-lost.txt");
  CHECK(find_input("/hardgrad-found.txt") == "/hardgrad-found.txt");
  CHECK(find_input("").empty());
  unsetenv("HARDGRAD_DATA");
  CHECK(find_input("hardgrad-found.txt") == "hardgrad-found.txt");
  if (before) setenv("HARDGRAD_DATA", kept.c_str(), 1);
}

}  // namespace hardgrad::testing::input_file_test
