// MNIST's files: valid, truncated, and with a wrong header.
#include "experiments/tasks/loaders/arrays.hpp"

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::idx_test {
using namespace tasks;

namespace {

std::string big_endian(std::initializer_list<std::uint32_t> numbers) {
  std::string bytes;
  for (auto number : numbers)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xFF);
  return bytes;
}

std::string images_refusal(const Folder& folder, const std::string& bytes) {
  const auto plain = refusal(folder, [&] { read_idx_images(folder.write("x", bytes)); });
  const auto packed = refusal(folder, [&] { read_idx_images(folder.write_gz("x", bytes)); });
  CHECK(plain == packed);
  return plain;
}
std::string labels_refusal(const Folder& folder, const std::string& bytes) {
  return refusal(folder, [&] { read_idx_labels(folder.write("x", bytes), 10); });
}

}  // namespace

TEST_CASE("images and labels are read, plain and gzipped") {
  Folder folder;
  const auto bytes = big_endian({0x803, 2, 2, 3}) + "abcdefghijkl";
  for (const auto& path : {folder.write("i", bytes), folder.write_gz("i.gz", bytes)}) {
    const auto images = read_idx_images(path);
    CHECK(images.count == 2);
    CHECK(images.rows == 2);
    CHECK(images.cols == 3);
    CHECK(images.image(1)[0] == 'g');
  }
  CHECK(read_idx_labels(folder.write("l", big_endian({0x801, 3}) + std::string("\1\0\x9", 3)), 10) ==
        std::string("\1\0\x9", 3));
}

TEST_CASE("damaged image files are rejected") {
  Folder folder;
  const std::string body(12, 'x');
  CHECK(has(images_refusal(folder, ""), "the idx header is truncated: 0 of 16 bytes"));
  CHECK(has(images_refusal(folder, big_endian({0x803, 2})), "the idx header is truncated: 8 of 16 bytes"));
  CHECK(has(images_refusal(folder, big_endian({0x801, 2})), "this is a file of labels"));
  CHECK(has(images_refusal(folder, "<html><head><title>404"), "this is not an MNIST idx file"));
  CHECK(has(images_refusal(folder, big_endian({0x803, 2, 2, 3}) + body.substr(1)), "= 12 bytes, but only 11 follow"));
  CHECK(has(images_refusal(folder, big_endian({0x803, 2, 2, 3}) + body + "x"), "= 12 bytes, but more follow"));
  CHECK(has(images_refusal(folder, big_endian({0x803, 0, 2, 3})), "holds no images"));
  CHECK(has(images_refusal(folder, big_endian({0x803, 1, 0, 3})), "images of 0x3 pixels"));
  CHECK(has(images_refusal(folder, big_endian({0x803, 1, 0xFFFFFFFF, 0xFFFFFFFF})), "is the header damaged?"));
}

TEST_CASE("a wrong header does not cause a large allocation") {
  Folder folder;
  CHECK(has(images_refusal(folder, big_endian({0x803, 0xFFFFFFFF, 4096, 4096})),
            "more than 512 MB: is it damaged? If not, split it, or raise the limit: HARDGRAD_INPUT_LIMIT=2048"));
  CHECK(has(images_refusal(folder, big_endian({0x803, 600000, 28, 28}) + "abc"), "but only 3 follow"));
  CHECK(has(labels_refusal(folder, big_endian({0x801, 400000000}) + "\1"), "but only 1 follow"));
}

TEST_CASE("damaged label files are rejected") {
  Folder folder;
  CHECK(has(labels_refusal(folder, big_endian({0x803, 2, 1, 1}) + "ab"), "this is a file of images"));
  CHECK(has(labels_refusal(folder, big_endian({0x801, 2}) + "\1\xA"), "label 1 is 10, but there are only the classes 0 to 9"));
}

}  // namespace hardgrad::testing::idx_test
