// The glimpse sensor on an image of 16 known numbers.
#include <doctest/doctest.h>

#include "core/models/parts/glimpses.hpp"

namespace hardgrad::testing::sensor_test {
namespace {

// 4 x 4: 1..16 in reading order.
Array<double> counting() {
  Array<double> image = zeros<double>({1, 4, 4});
  for (int i = 0; i < 16; ++i) image.flat(i) = i + 1;
  return image;
}

void check_row(const Sensor& sensor, int cell, const std::vector<double>& expected) {
  Tape<double> tape;
  const std::vector<int> example{0}, cells{cell};
  const auto image = counting();
  const auto seen = sensor.patches(tape, image, example, cells);
  REQUIRE(seen.cols() == expected.size());
  for (std::size_t n = 0; n < expected.size(); ++n) CHECK(seen.value().data[n] == doctest::Approx(expected[n]));
}

}  // namespace

TEST_CASE("sensor: a 2 x 2 grid of 2 x 2 patches is the quadrants") {
  const Sensor sensor{2, 2, 1, 4, 4};
  check_row(sensor, 0, {1, 2, 5, 6});
  check_row(sensor, 1, {3, 4, 7, 8});
  check_row(sensor, 3, {11, 12, 15, 16});
}

TEST_CASE("sensor: the second scale averages twice the width, with zeros outside") {
  const Sensor sensor{2, 2, 2, 4, 4};
  // rows and columns -1..2: the corner block holds pixel 1 alone, the inner one 6, 7, 10, 11
  check_row(sensor, 0, {1, 2, 5, 6, 1.0 / 4, (2 + 3) / 4.0, (5 + 9) / 4.0, (6 + 7 + 10 + 11) / 4.0});
}

TEST_CASE("sensor: one cell sees the middle, and windows may start outside") {
  check_row(Sensor{1, 2, 1, 4, 4}, 0, {6, 7, 10, 11});
  CHECK(Sensor{2, 8, 1, 4, 4}.first(0, 4, 8) == -3);
  CHECK(Sensor{3, 3, 1, 4, 4}.first(0, 4, 3) == -1);  // floor(4/6 - 3/2 + 1/2) = floor(-1/3)
}

TEST_CASE("sensor: all cells at once equal the cells one by one") {
  const Sensor sensor{3, 2, 2, 4, 4};
  Tape<float> tape;
  const auto image = counting();
  const auto all = sensor.every_patch(tape, image);
  REQUIRE(all.rows() == 9);
  for (int c = 0; c < 9; ++c) {
    const std::vector<int> example{0}, cell{c};
    const auto one = sensor.patches(tape, image, example, cell);
    for (std::size_t n = 0; n < sensor.values(); ++n) CHECK(all.value()(c, n) == one.value()(0, n));
  }
}

}  // namespace hardgrad::testing::sensor_test
