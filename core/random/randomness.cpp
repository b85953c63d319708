#include "core/random/randomness.hpp"

#include <xxhash.h>

#include <Random123/philox.h>
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/kernels/functions.hpp"
#include "core/support/array.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

void check_total(double total) {
  if (std::abs(total - 1) > 1e-3) [[unlikely]]
    throw Bug(fmt::format("the probabilities of a draw sum to {}, not to 1", total));
}

Key::Key(std::uint64_t root_seed) : value_(XXH64(&root_seed, sizeof root_seed, 0)) {}
Key Key::operator/(std::string_view name) const { return {Raw{}, XXH64(name.data(), name.size(), value_ ^ 0x6e616d65)}; }
Key Key::operator/(std::uint64_t number) const { return {Raw{}, XXH64(&number, sizeof number, value_ ^ 0x6e756d)}; }

namespace {

// Each column has a separate key, because the other indices fill the counter: the stream's key plus a multiple of the golden
// ratio. In Philox any two keys give independent streams.
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
std::uint64_t key_of_column(const Key& key, std::uint32_t column) { return key.value() + column * golden; }

std::uint64_t philox(const Key& key, const Draw& where) {
  const auto k = key_of_column(key, where.column);
  const auto words = r123::Philox4x32{}({{where.example, where.replica, where.step, where.index}},
                                        {{static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(k >> 32)}});
  return (std::uint64_t{words[0]} << 32) | words[1];
}

// Numbers of 64 bits in one register of the processor, and x m for x and m below 2^32. (Compilers do not see that x is small, and
// take three products; g++ 14 vectorises no such loop.)
#if defined(__AVX512F__)
using Lanes [[gnu::vector_size(64)]] = std::uint64_t;
Lanes product(Lanes x, std::uint64_t m) { return Lanes(_mm512_mul_epu32(__m512i(x), __m512i(Lanes{} + m))); }
#elif defined(__AVX2__)
using Lanes [[gnu::vector_size(32)]] = std::uint64_t;
Lanes product(Lanes x, std::uint64_t m) { return Lanes(_mm256_mul_epu32(__m256i(x), __m256i(Lanes{} + m))); }
#elif defined(__SSE2__)
using Lanes [[gnu::vector_size(16)]] = std::uint64_t;
Lanes product(Lanes x, std::uint64_t m) { return Lanes(_mm_mul_epu32(__m128i(x), __m128i(Lanes{} + m))); }
#else
using Lanes [[gnu::vector_size(16)]] = std::uint64_t;
Lanes product(Lanes x, std::uint64_t m) { return (x & 0xffffffffu) * m; }
#endif

// The same for columns where.column, where.column + 1, ... The counter is the same in all columns, so the products of the first
// round are two numbers. Products read the lower halves of the lanes only, so the upper ones may hold anything. Several registers
// take each round together: one alone would wait for its products.
template <std::size_t registers>
void philox_of_registers(const Key& key, const Draw& where, std::uint64_t* bits) {
  constexpr std::size_t lanes = sizeof(Lanes) / sizeof(std::uint64_t);
  constexpr std::uint64_t low = 0xffffffffu;
  const std::uint64_t a = std::uint64_t{where.example} * PHILOX_M4x32_0, b = std::uint64_t{where.step} * PHILOX_M4x32_1;
  Lanes after;  // keys of columns less that of the first
  for (std::size_t i = 0; i < lanes; ++i) after[i] = i * golden;
  Lanes k0[registers], k1[registers], c0[registers], c1[registers], c2[registers], c3[registers];
#pragma GCC unroll 4
  for (std::size_t r = 0; r < registers; ++r) {
    const auto first = where.column + static_cast<std::uint32_t>(r * lanes);
    k0[r] = after + key_of_column(key, first);
    if (first > ~std::uint32_t{0} - lanes) [[unlikely]]  // the last column is followed by column 0
      for (std::size_t i = 0; i < lanes; ++i) k0[r][i] = key_of_column(key, first + static_cast<std::uint32_t>(i));
    k1[r] = k0[r] >> 32;
    c0[r] = ((b >> 32) ^ where.replica) ^ k0[r];
    c1[r] = Lanes{} + b;
    c2[r] = ((a >> 32) ^ where.index) ^ k1[r];
    c3[r] = Lanes{} + a;
  }
#pragma GCC unroll 9
  for (int round = 1; round < 10; ++round) {
#pragma GCC unroll 4
    for (std::size_t r = 0; r < registers; ++r) {
      k0[r] += PHILOX_W32_0;
      k1[r] += PHILOX_W32_1;
      const Lanes of_c0 = product(c0[r], PHILOX_M4x32_0), of_c2 = product(c2[r], PHILOX_M4x32_1);
      c0[r] = (of_c2 >> 32) ^ c1[r] ^ k0[r];
      c1[r] = of_c2;
      c2[r] = (of_c0 >> 32) ^ c3[r] ^ k1[r];
      c3[r] = of_c0;
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < registers; ++r) {
    const Lanes drawn = (c0[r] << 32) | (c1[r] & low);
    std::memcpy(bits + r * lanes, &drawn, sizeof drawn);
  }
}
template <std::size_t N>
void philox(const Key& key, Draw where, std::uint64_t* bits) {
  constexpr std::size_t lanes = sizeof(Lanes) / sizeof(std::uint64_t), most = sizeof(Lanes) == 64 ? 4 : 2;  // without spills
  constexpr std::size_t registers = std::min(most, N / lanes), at_once = registers * lanes;
  static_assert(N % at_once == 0);
  for (std::size_t first = 0; first < N; first += at_once, where.column += at_once)
    philox_of_registers<registers>(key, where, bits + first);
}

}  // namespace

// Columns are computed ahead only if the column before was the last one requested at the same place.
std::uint64_t KeyedRandomness::bits(Draw where) {
  auto& [place, count, bits] = columns_[(where.index ^ (where.index >> 29)) % places];
  const std::uint32_t i = where.column - place.column;
  const bool same = place.example == where.example && place.replica == where.replica && place.step == where.step &&
                    place.index == where.index;
  if (same && i < count) return bits[i];
  const bool goes_on = same && i == count && count > 0;
  place = where;
  count = goes_on ? ahead : 1;
  if (goes_on)
    philox<ahead>(key_, where, bits.data());
  else
    bits[0] = philox(key_, where);
  return bits[0];
}

namespace {

// 53 random bits plus half a step: never 0 or 1.
double open_unit(std::uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1.0p-53; }

// The option whose interval of the cumulative probabilities holds u.
int option_at(double u, std::span<const double> probabilities) {
  if (probabilities.size() == 2) {  // as below, without unpredictable branches
    const double p = probabilities[0], q = probabilities[1];
    check_total(p + q);
    return static_cast<int>((u * (p + q) >= p || p <= 0) && q > 0);
  }
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  check_total(total);
  double left = u * total;
  int last = 0;
  for (int i = 0; i < static_cast<int>(probabilities.size()); ++i) {
    if (probabilities[i] <= 0) continue;
    last = i;
    if ((left -= probabilities[i]) < 0) return i;
  }
  return last;  // not reached except by rounding: the last option with positive probability
}

// The same for N choices among `width` options each, p [N, width], with vector instructions and without unpredictable branches.
template <std::size_t width, std::size_t N>
void options_at(const std::array<std::uint64_t, N>& bits, const double* p, int* option) {
  using Lanes = kernels::Batch<double>;
  std::array<std::array<double, N>, width> of_option;
  for (std::size_t o = 0; o < width; ++o)
    for (std::size_t i = 0; i < N; ++i) of_option[o][i] = p[i * width + o];
  std::array<double, N> u, total, chosen;
  for (std::size_t i = 0; i < N; ++i) u[i] = open_unit(bits[i]);
  kernels::for_lanes<double>(N, [&](auto lane) {
    const Lanes zero(0.0), none(-1.0);
    Lanes sum = zero;
    for (const auto& of : of_option) sum += lane.load(of.data());
    lane.store(total.data(), sum);
    Lanes left = lane.load(u.data()) * sum, last = zero, found = none;  // last: with positive probability; found: holds u
    for (std::size_t o = 0; o < width; ++o) {
      const Lanes share = xsimd::max(lane.load(of_option[o].data()), zero);
      const Lanes this_one = xsimd::select(share > zero, Lanes(static_cast<double>(o)), none);
      left -= share;
      last = xsimd::max(last, this_one);
      found = xsimd::select((found < zero) & (left < zero), this_one, found);
    }
    lane.store(chosen.data(), xsimd::select(found < zero, last, found));
  });
  double off = 0;
  for (double t : total) off = std::max(off, std::abs(t - 1));
  if (off > 1e-3) [[unlikely]]
    for (double t : total) check_total(t);
  for (std::size_t i = 0; i < N; ++i) option[i] = static_cast<int>(chosen[i]);
}

/// u / (1 - u) for a uniform number u.
double odds_of(std::uint64_t bits) {
  const double u = open_unit(bits);
  return u / (1 - u);
}

}  // namespace

bool KeyedRandomness::words(Draw where, std::span<std::uint64_t> word) {
  std::size_t d = 0;
  const auto fill = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
    for (; d + N <= word.size(); d += N, where.column += N) philox<N>(key_, where, &word[d]);
  };
  fill(std::integral_constant<std::size_t, 2 * ahead>());
  fill(std::integral_constant<std::size_t, ahead>());
  if (d == word.size()) return true;
  std::array<std::uint64_t, ahead> last;
  philox<ahead>(key_, where, last.data());
  std::copy_n(last.begin(), word.size() - d, &word[d]);
  return true;
}

double KeyedRandomness::uniform(Draw where, const Pieces&) { return open_unit(bits(where)); }

int KeyedRandomness::categorical(std::span<const double> probabilities, Draw where) {
  return option_at(uniform(where), probabilities);
}

void KeyedRandomness::categorical(std::span<const double> probabilities, std::size_t width, std::span<const int> options,
                                  Draw where, std::span<int> option) {
  if (options.size() == 1) return Randomness::categorical(probabilities, width, options, where, option);
  std::array<std::uint64_t, ahead> bits;
  for (std::size_t d = 0; d < options.size(); ++d) {
    if (d % ahead == 0) {
      philox<ahead>(key_, where, bits.data());
      where.column += ahead;
      if ((width == 2 || width == 3) && d + ahead <= options.size() && all_are(options.subspan(d, ahead), width)) {
        const auto draw = width == 2 ? options_at<2, ahead> : options_at<3, ahead>;
        draw(bits, &probabilities[d * width], &option[d]);
        d += ahead - 1;
        continue;
      }
    }
    const auto n = static_cast<std::size_t>(options[d]);
    option[d] = n > 1 ? option_at(open_unit(bits[d % ahead]), probabilities.subspan(d * width, n)) : 0;
  }
}

void Randomness::categorical(std::span<const double> probabilities, std::size_t width, std::span<const int> options, Draw where,
                             std::span<int> option) {
  for (std::size_t d = 0; d < options.size(); ++d, ++where.column) {
    const auto n = static_cast<std::size_t>(options[d]);
    option[d] = n > 1 ? categorical(probabilities.subspan(d * width, n), where) : 0;
  }
}

double Randomness::logistic(Draw where, double) {
  const double u = uniform(where);
  return std::log(u) - std::log1p(-u);
}

void Randomness::logistic(std::span<const Draw> where, std::span<const double> edges, std::span<double> x) {
  std::size_t i = 0;
  for (Draw place : where)
    for (const std::size_t end = i + x.size() / where.size(); i < end; ++i, ++place.column) x[i] = logistic(place, edges[i]);
}

void KeyedRandomness::logistic(std::span<const Draw> where, std::span<const double>, std::span<double> x) {
  std::array<std::uint64_t, ahead> bits;
  std::array<double, ahead> odds;
  std::size_t i = 0;
  for (Draw place : where) {
    const std::size_t columns = x.size() / where.size(), end = i + columns;
    if (columns == 1) x[i++] = odds_of(this->bits(place));
    for (; i < end; place.column += ahead) {
      philox<ahead>(key_, place, bits.data());
      for (std::size_t j = 0; j < ahead; ++j) odds[j] = odds_of(bits[j]);
      const std::size_t n = std::min(ahead, end - i);
      std::copy_n(odds.begin(), n, &x[i]);
      i += n;
    }
  }
  kernels::map(x.data(), x.data(), x.size(), [](const kernels::Batch<double>& v) { return kernels::log<double>(v); });
}

double Randomness::standard(Standard noise, Draw where) {
  if (noise == Standard::uniform) return uniform(where);
  const double radius = -2 * std::log(uniform(where));  // squared: exponential of mean 2
  if (noise == Standard::weibull) return std::sqrt(radius);
  Draw other = where;
  other.index ^= 0x80000000u;
  const double normal = std::sqrt(radius) * std::cos(2 * std::numbers::pi * uniform(other));  // Box & Muller 1958
  if (noise == Standard::normal) return normal;
  other.index ^= 0x40000000u;  // length of three normal numbers, sign of one of them
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
