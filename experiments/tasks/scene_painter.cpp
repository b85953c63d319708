// Pictures of coloured shapes.
#include "experiments/tasks/scene_painter.hpp"
#include "experiments/tasks/draws.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace hardgrad::tasks {
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
