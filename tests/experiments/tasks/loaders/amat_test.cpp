// Images as text: valid and invalid ones.
#include "experiments/tasks/loaders/arrays.hpp"

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::amat_test {
using namespace tasks;

namespace {

std::string says(const Folder& folder, const std::string& text) {
  return refusal(folder, [&] { parse_amat(read_text(folder.write("x", text))); });
}

}  // namespace

TEST_CASE("numbers are read in every form") {
  Folder folder;
  const auto path = folder.write_gz("x.gz", "0 1 1.0 0\r\n\n 0.5\t1e0  0 0.25 \n");
  const auto images = parse_amat(read_text(path));
  CHECK(images.count == 2);
  CHECK(images.rows == 2);
  CHECK(images.cols == 2);
  CHECK(images.pixels == std::string("\0\xFF\xFF\0\x80\xFF\0\x40", 8));
}

TEST_CASE("damaged text is rejected with line and column") {
  Folder folder;
  CHECK(says(folder, "0 1 1 0\n0 1 2 0\n") == "x:2:5: a pixel must be a number from 0 to 1, got \"2\"");
  CHECK(has(says(folder, "0 1 1 0\n0 1 -1 0\n"), "x:2:5: a pixel must be"));
  CHECK(has(says(folder, "0 1 nan 0\n"), "x:1:5: a pixel must be"));
  CHECK(has(says(folder, "0 1 1x 0\n"), "got \"1x\""));
  CHECK(has(says(folder, "0,1,1,0\n"), "got \"0,1,1,0\""));
  CHECK(says(folder, "0 1 1\n") == "x:1: 3 numbers; a line must be a square image of n x n");
  CHECK(says(folder, "0 1 1 0\n0 1 1\n") == "x:2: 3 numbers, but the first image has 2x2; is it truncated?");
  CHECK(says(folder, "\n \n") == "x: holds no images");
  CHECK(has(says(folder, std::string("0 1\0 1", 6)), "a zero byte"));
}

}  // namespace hardgrad::testing::amat_test
