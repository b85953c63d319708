#include "core/random/randomness.hpp"

#include <xxhash.h>

#include <Random123/philox.h>

#include <cmath>
#include <numbers>
#include <numeric>

namespace hardgrad {

Key::Key(std::uint64_t root_seed) : value_(XXH64(&root_seed, sizeof root_seed, 0)) {}
Key Key::operator/(std::string_view name) const { return {Raw{}, XXH64(name.data(), name.size(), value_ ^ 0x6e616d65)}; }
Key Key::operator/(std::uint64_t number) const { return {Raw{}, XXH64(&number, sizeof number, value_ ^ 0x6e756d)}; }

std::uint64_t KeyedRandomness::bits(Draw where) const {
  // A column has a key of its own, the counter being full with the rest: the stream's, a step of the golden ratio further for
  // each. Philox makes any two keys independent streams.
  const auto k = key_.value() + where.column * 0x9e3779b97f4a7c15u;
  const auto words = r123::Philox4x32{}({{where.example, where.replica, where.step, where.index}},
                                        {{static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)}});
  return (std::uint64_t{words[0]} << 32) | words[1];
}

// 53 random bits, moved by half a step: never 0, never 1.
double KeyedRandomness::uniform(Draw where, const Pieces&) {
  return (static_cast<double>(bits(where) >> 11) + 0.5) * 0x1.0p-53;
}

int KeyedRandomness::categorical(std::span<const double> probabilities, Draw where) {
  double left = uniform(where) * std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  int last = 0;
  for (int i = 0; i < static_cast<int>(probabilities.size()); ++i) {
    if (probabilities[i] <= 0) continue;
    last = i;
    if ((left -= probabilities[i]) < 0) return i;
  }
  return last;  // rounding left a crumb: the last possible option, never an impossible one
}

double Randomness::logistic(Draw where, const Pieces&) {
  const double u = uniform(where);
  return std::log(u) - std::log1p(-u);
}

double Randomness::standard(Standard noise, Draw where) {
  if (noise == Standard::uniform) return uniform(where);
  const double radius = -2 * std::log(uniform(where));  // squared: exponential of mean 2
  if (noise == Standard::weibull) return std::sqrt(radius);
  Draw other = where;
  other.index ^= 0x80000000u;
  const double normal = std::sqrt(radius) * std::cos(2 * std::numbers::pi * uniform(other));  // Box & Muller 1958
  if (noise == Standard::normal) return normal;
  other.index ^= 0x40000000u;  // of three normal numbers' length, the sign of one
  return std::copysign(std::sqrt(normal * normal - 2 * std::log(uniform(other))), normal);
}

std::uint64_t KeyedRandomness::below(std::uint64_t bound, Draw where) {
  return static_cast<std::uint64_t>(uniform(where) * static_cast<double>(bound));
}

std::vector<int> permutation(std::size_t n, Key key) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  KeyedRandomness random(key);
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i, {.step = static_cast<std::uint32_t>(i)})]);
  return order;
}

}  // namespace hardgrad
