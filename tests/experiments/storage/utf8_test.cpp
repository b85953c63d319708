// Text is sanitised for files and terminals.
#include "experiments/support/text.hpp"

#include <doctest/doctest.h>

namespace hardgrad::testing::utf8_test {

TEST_CASE("UTF-8 is kept, every other byte becomes one replacement character") {
  for (const std::string good : {"", "abc", "\xC3\xA4\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xF4\x8F\xBF\xBF", "\xED\x9F\xBF"}) {
    CHECK(is_utf8(good));
    CHECK(valid_utf8(good) == good);
  }
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(valid_utf8("a\x80z") == "a" + mark + "z");
  CHECK(valid_utf8("\xC0\xAF") == mark + mark);                        // overlong
  CHECK(valid_utf8("\xED\xA0\x80") == mark + mark + mark);             // surrogate
  CHECK(valid_utf8("\xF4\x90\x80\x80") == mark + mark + mark + mark);  // beyond U+10FFFF
  CHECK(valid_utf8("ab\xE2\x82") == "ab" + mark + mark);               // truncated
  CHECK(valid_utf8(std::string("a\0b", 3)) == "a" + mark + "b");
  CHECK_FALSE(is_utf8("\xC3"));
}

TEST_CASE("printed text is one line without control sequences") {
  CHECK(printable("gr\xC3\xBC\xC3\x9F \xE2\x82\xAC") == "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC");
  CHECK(printable("a\nb\tc\r\x1b[2J\x7f") == "a\\nb\\tc\\x0d\\x1b[2J\\x7f");
  CHECK(printable("\xC2\x9B"
                  "2J") == "\\xc2\\x9b2J");  // a control sequence that is one character
  CHECK(printable("\xC2\xA0") == "\xC2\xA0");
  CHECK(printable(std::string("\0\xFF", 2)) == "\\x00\\xff");
}

}  // namespace hardgrad::testing::utf8_test
