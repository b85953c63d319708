// .npy files: as NumPy writes them, and every error.
#include "experiments/tasks/loaders/arrays.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::npy_test {
using namespace tasks;

namespace {

template <class X>
std::string bytes_of_numbers(const std::vector<X>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(X)};
}
std::string file(const std::string& dictionary, const std::string& body, int version = 1) {
  auto header = dictionary + "\n";
  while ((header.size() + (version == 1 ? 10 : 12)) % 64 != 0) header.insert(header.size() - 1, " ");
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + body;
}
std::string described(const std::string& type, const std::string& order, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}
const std::vector<float> six{1, -2.5f, 0, 4, 5, 6};

}  // namespace

TEST_CASE("float32 and float64 arrays are read, plain and gzipped") {
  Folder folder;
  const auto small = file(described("<f4", "False", "(1, 2, 3)"), bytes_of_numbers(six));
  for (const auto& path : {folder.write("a.npy", small), folder.write_gz("a.npy.gz", small)}) {
    const auto array = read_npy(path);
    CHECK(array.shape() == std::vector<std::size_t>{1, 2, 3});
    CHECK(array.storage() == std::vector<double>{1, -2.5, 0, 4, 5, 6});
  }
  const std::vector<double> wide{1.1, 2.2};
  const auto two = read_npy(folder.write("b.npy", file(described("<f8", "False", "(2,)"), bytes_of_numbers(wide), 2)));
  CHECK(two.shape() == std::vector<std::size_t>{2});
  CHECK(two.storage() == wide);
}

TEST_CASE("every error is reported in one line") {
  Folder folder;
  const auto says = says_of(folder, "a.npy", [](const std::string& path) { read_npy(path); });
  const auto body = bytes_of_numbers(six);
  CHECK(has(says(""), "a.npy: does not begin like a .npy file"));
  CHECK(has(says("PK\x03\x04 an archive"), "does not begin like a .npy file"));
  CHECK(has(says(file(described("<i4", "False", "(1, 2, 3)"), body)), "holds numbers of type '<i4'; expected '<f4' or '<f8'"));
  CHECK(has(says(file(described("<f4", "True", "(1, 2, 3)"), body)), "is in Fortran order"));
  CHECK(has(says(file(described("<f4", "False", "(1, 2, 4)"), body)),
            "truncated: the header promises 8 numbers, but only 24 bytes"));
  CHECK(has(says(file(described("<f4", "False", "(1, 2, 2)"), body)), "the header promises 4 numbers, but more bytes follow"));
  CHECK(has(says(file(described("<f4", "False", "(1, 0, 2)"), body)), "the shape (1, 0, 2) is invalid"));
  CHECK(has(says(file(described("<f4", "False", "(-1, 2)"), body)), "the shape (-1, 2) is invalid"));
  CHECK(has(says(file(described("<f4", "False", "(1,1,1,1,1,1,1,1,1)"), body)), "is invalid: it must have up to 8 numbers"));
  CHECK(has(says(file(described("<f4", "False", "(4294967296, 4294967296)"), body)), "promises more than 512 MB"));
  CHECK(has(says(file(described("<f4", "False", "(99999999999999999999999, 1)"), body)), "is invalid"));
  CHECK(has(says(file(described("<f4", "False", "6"), body)), "the shape 6 is not a tuple"));
  CHECK(has(says(file("{'descr': '<f4', 'shape': (6,), }", body)), "the header has no 'fortran_order'"));
  CHECK(has(says(file(described("<f4", "False", "(1, 2, 3)"), body).substr(0, 40)), "truncated in the header"));
  CHECK(has(says("\x93NUMPY\x01" + std::string(1, '\0') + "\x40"), "the header's length is damaged or cut off"));
  CHECK(has(says(file(described("<f4", "False", "(1, 2, 3)"), bytes_of_numbers(std::vector<float>{1, 2, NAN, 4, 5, 6}))),
            "number 3 of 6 is not finite"));
}

TEST_CASE("a damaged array is read or rejected with one line") {
  Folder folder;
  const auto good = file(described("<f4", "False", "(1, 2, 3)"), bytes_of_numbers(six));
  std::mt19937 random(5);
  int refused = 0, read = 0;
  for (int i = 0; i < 3000; ++i) {
    auto damaged = good;
    for (auto flips = random() % 4; flips > 0; --flips) damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    if (random() % 3 == 0) damaged.resize(random() % damaged.size());
    const auto path = folder.write("b.npy", damaged);
    const auto what = refusal(folder, [&] { read_npy(path); });
    CHECK((what == "accepted" || what.starts_with("b.npy: ")));
    ++(what == "accepted" ? read : refused);
  }
  CHECK(refused > 500);
  CHECK(read > 500);
}

}  // namespace hardgrad::testing::npy_test
