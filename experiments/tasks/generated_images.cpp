#include "experiments/tasks/generated_images.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "experiments/tasks/draws.hpp"

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

namespace {

struct Colour {
  const char* name;
  std::array<std::uint8_t, 3> rgb;
};
constexpr std::array<Colour, 5> colours = {{{"red", {230, 25, 25}},
                                            {"green", {25, 180, 25}},
                                            {"blue", {25, 50, 230}},
                                            {"yellow", {230, 205, 25}},
                                            {"white", {230, 230, 230}}}};
constexpr std::array shapes = {"circle", "square", "triangle", "cross"};

/// True if the shape contains the point (x, y), relative to the object's middle in units of its radius, y downwards.
bool inside(int shape, double x, double y) {
  switch (shape) {
    case 0: return x * x + y * y <= 1;
    case 1: return std::max(std::abs(x), std::abs(y)) <= 0.85;
    case 2: return y <= 0.9 && std::abs(x) <= (y + 1) / 1.9;
    default: return std::min(std::abs(x), std::abs(y)) <= 0.3 && std::max(std::abs(x), std::abs(y)) <= 1;
  }
}

}  // namespace

CaptionedScene ScenePainter::paint(Key key) const {
  Draws draw(key);

  CaptionedScene scene;
  scene.image.assign(side() * side() * 3, 0);
  auto place = permutation(static_cast<std::size_t>(grid) * grid, key / "places");
  place.resize(std::min<std::size_t>(place.size(), 1 + draw.below(objects)));
  std::sort(place.begin(), place.end());  // in reading order
  for (std::size_t k = 0; k < place.size(); ++k) {
    const int row = place[k] / grid, col = place[k] % grid;
    const auto& colour = colours[draw.below(colours.size())];
    const int shape = draw.below(shapes.size());
    const double radius = draw.between(2.6, 3.4);
    const double middle_y = row * double(cell) + cell / 2.0 + draw.between(-0.5, 0.5);
    const double middle_x = col * double(cell) + cell / 2.0 + draw.between(-0.5, 0.5);
    for (std::size_t i = row * cell; i < (row + 1) * cell; ++i)
      for (std::size_t j = col * cell; j < (col + 1) * cell; ++j)
        if (inside(shape, (j + 0.5 - middle_x) / radius, (i + 0.5 - middle_y) / radius))
          std::copy(colour.rgb.begin(), colour.rgb.end(),
                    scene.image.begin() + static_cast<std::ptrdiff_t>((i * side() + j) * 3));
    const auto say = [&](const char* word, int gold) {
      scene.caption.emplace_back(word);
      scene.gold.push_back(gold);
    };
    say("a", -1);
    say(colour.name, place[k]);
    say(shapes[shape], place[k]);
    if (k + 1 == place.size()) break;
    if (place[k + 1] / grid == row) {
      say("left", -1);
      say("of", -1);
    } else {
      say("above", -1);
    }
  }
  if (noise > 0)
    for (std::uint32_t p = 0; p < scene.image.size(); ++p)
      scene.image[p] = static_cast<std::uint8_t>(std::min(255.0, scene.image[p] + 255 * noise * draw.numbered(p)));
  return scene;
}

}  // namespace hardgrad::tasks
