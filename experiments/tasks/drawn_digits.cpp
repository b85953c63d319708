// Digits drawn with seven-segment strokes.
#include "experiments/tasks/drawn_digits.hpp"
#include "experiments/tasks/draws.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

namespace hardgrad::tasks {
namespace {

struct Point {
  double x, y;
};
struct Stroke {
  Point from, to;
};

// In a unit box, y downwards: top, upper right, lower right, bottom, lower left, upper left, middle.
constexpr std::array<Stroke, 7> strokes = {{{{0, 0}, {1, 0}},
                                            {{1, 0}, {1, .5}},
                                            {{1, .5}, {1, 1}},
                                            {{0, 1}, {1, 1}},
                                            {{0, .5}, {0, 1}},
                                            {{0, 0}, {0, .5}},
                                            {{0, .5}, {1, .5}}}};
constexpr std::array<std::string_view, 10> strokes_of_digit = {"012345", "12",     "01643", "01623",   "5612",
                                                               "05623",  "056423", "012",   "0123456", "012356"};

double distance(Point p, const Stroke& s) {
  const double dx = s.to.x - s.from.x, dy = s.to.y - s.from.y, length2 = dx * dx + dy * dy;
  const double along = std::clamp(((p.x - s.from.x) * dx + (p.y - s.from.y) * dy) / length2, 0.0, 1.0);
  return std::hypot(p.x - s.from.x - along * dx, p.y - s.from.y - along * dy);
}

void draw(std::uint8_t* pixels, int size, std::size_t digit, Draws numbers) {
  const double pen = std::max(0.5, size * numbers.between(0.03, 0.055));  // half the stroke's width
  const double height = size * numbers.between(0.5, 0.7), width = height * numbers.between(0.45, 0.65),
               slant = numbers.between(-0.2, 0.2);
  const double lean = std::abs(slant) * height / 2;
  const double room_x = std::max(0.0, (size - width) / 2 - lean - pen), room_y = std::max(0.0, (size - height) / 2 - pen);
  const Point centre{size / 2.0 + numbers.between(-0.7, 0.7) * room_x, size / 2.0 + numbers.between(-0.7, 0.7) * room_y};
  const auto placed = [&](Point p) {
    return Point{centre.x + (p.x - 0.5) * width - slant * (p.y - 0.5) * height, centre.y + (p.y - 0.5) * height};
  };
  std::vector<Stroke> ink;
  for (char c : strokes_of_digit[digit]) {
    const auto& stroke = strokes[static_cast<std::size_t>(c - '0')];
    ink.push_back({placed(stroke.from), placed(stroke.to)});
  }
  for (int row = 0; row < size; ++row)
    for (int col = 0; col < size; ++col) {
      double nearest = size;
      for (const auto& stroke : ink) nearest = std::min(nearest, distance({col + 0.5, row + 0.5}, stroke));
      pixels[row * size + col] = static_cast<std::uint8_t>(std::lround(255 * std::clamp(pen - nearest + 0.5, 0.0, 1.0)));
    }
}

}  // namespace

IdxImages draw_digits(std::size_t count, int size, Key key) {
  const auto side = static_cast<std::size_t>(size);
  IdxImages images{count, side, side, std::string(count * side * side, '\0')};
  for (std::size_t i = 0; i < count; ++i)
    draw(reinterpret_cast<std::uint8_t*>(images.pixels.data()) + i * side * side, size, i % 10,
         Draws(key / static_cast<std::uint64_t>(i)));
  return images;
}

}  // namespace hardgrad::tasks
