// An option follows from where u lies between the sums of the probabilities. They are computed in float, which is enough for all
// but a few columns in 100,000. Where u is too near to a sum, the option is drawn from the probabilities in double.
#include "core/random/column_draws.hpp"

#include <cstring>
#include <limits>

#include "core/kernels/functions.hpp"
#include "core/kernels/pairs.hpp"
#include "core/kernels/rows.hpp"
#include "core/support/views.hpp"

namespace hardgrad {
namespace {

constexpr std::size_t columns_at_once = 256;  // columns at a time
constexpr float margin = 1e-5f;               // above the error of a sum in float: most_options * 2e-7, and 6e-8 of u
constexpr float total_margin = 5e-4f;         // check_total decides
using Lane = kernels::Batch<float>;

/// The upper 24 bits of each word as a number in [0, 1).
void uniforms(const std::uint64_t* word, std::size_t n, float* u) {
  using Words [[gnu::vector_size(64)]] = std::uint64_t;
  using Integers [[gnu::vector_size(32)]] = std::int32_t;
  using Floats [[gnu::vector_size(32)]] = float;
  for (std::size_t i = 0; i < n; i += 8) {
    Words words;
    std::memcpy(&words, word + i, sizeof words);
    const Floats numbers = __builtin_convertvector(__builtin_convertvector(words >> 40, Integers), Floats) * 0x1p-24f;
    std::memcpy(u + i, &numbers, sizeof numbers);
  }
}

/// p [S, columns_at_once] = exp of log_p [n, S].
template <class T, class Options>
void exponentials(const T* log_p, std::size_t n, Options S, float* p) {
  alignas(64) float row_major[most_options * columns_at_once];
  std::copy_n(log_p, n * S, row_major);
  kernels::exp_all(row_major, row_major, n * S);
  if (S == 2) return kernels::split_pairs(row_major, n, p, p + columns_at_once);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t o = 0; o < S; ++o) p[o * columns_at_once + i] = row_major[i * S + o];
}

/// Calls each(lane, p), p(o) the register of the probabilities of option o of the lane's rows, for all registers of log_p [n, S].
template <class T, class Options, class F>
void for_probabilities_of(const T* log_p, std::size_t n, Options S, F&& each) {
  constexpr std::size_t w = kernels::width<float>;
  std::size_t done = 0;
  if constexpr (std::is_same_v<T, float>)
    for (; S == 2 && done + w <= n; done += w) {  // without passes through memory
      const auto l = kernels::load_pairs(log_p + 2 * done);
      const Lane p[] = {kernels::exp<float>(l.first), kernels::exp<float>(l.second)};
      each(kernels::FullLane<float>{done}, [&](std::size_t o) { return p[o]; });
    }
  if (done == n) return;
  alignas(64) float p[most_options * columns_at_once];
  exponentials(log_p, n, S, p);
  const auto of = [&](auto lane) { return [&p, lane](std::size_t o) { return lane.load(p + o * columns_at_once); }; };
  if (done > 0)
    each(kernels::LastLane<float>{n - w, kernels::from_entry<float>(done + w - n)}, of(kernels::FullLane<float>{n - w}));
  else
    kernels::for_lanes<float>(n, [&](auto lane) { each(lane, of(lane)); });
}

/// Sums of the probabilities of a block's columns: row o has p_0 + ... + p_o. The last row, of the totals, is NaN where they are
/// not about 1.
using Sums = float[most_options][columns_at_once];

template <class Lanes, class Weights>
void put_sums(Lanes lane, const Weights& weight, std::size_t S, Sums& sums) {
  Lane total = weight(0);
  for (std::size_t o = 1; o < S; total += weight(o++)) lane.store(sums[o - 1], total);
  const auto right = xsimd::abs(total - Lane(1.f)) < Lane(total_margin);
  lane.store(sums[S - 1], xsimd::select(right, total, Lane(std::numeric_limits<float>::quiet_NaN())));
}

/// place[i] of u[i] among the sums of column i; -1 where it is too near to one of them. True if there is none of these.
template <class Options>
bool places(const float* u, const Sums& sums, std::size_t n, Options S, int* __restrict place) {
  alignas(64) float found[columns_at_once];
  kernels::for_lanes<float>(n, [&](auto lane) {
    const Lane t = lane.load(u) * lane.load(sums[S - 1]);
    Lane passed(0.f);
    auto sure = passed == passed;
    for (std::size_t o = 0; o + 1 < S; ++o) {
      const Lane beyond = t - lane.load(sums[o]);
      passed += xsimd::select(beyond < Lane(0.f), Lane(0.f), Lane(1.f));
      sure = sure & (xsimd::abs(beyond) > Lane(margin));
    }
    lane.store(found, xsimd::select(sure, passed, Lane(-1.f)));
  });
  int least = 0;
  for (std::size_t i = 0; i < n; ++i) {
    place[i] = static_cast<int>(found[i]);
    least = place[i] < least ? place[i] : least;
  }
  return least == 0;
}

Draw beside(Draw where, std::size_t d) {
  where.column += static_cast<std::uint32_t>(d);
  return where;
}

/// For blocks of D columns calls prepare(first, n), then draw(place, first, n, u) for each place with its columns' numbers in
/// [0, 1); false if there are none.
template <class Prepare, class F>
bool for_uniforms(std::size_t D, Randomness& random, std::span<const Draw> where, Prepare&& prepare, F&& draw) {
  alignas(64) std::array<std::uint64_t, columns_at_once> word{};
  alignas(64) float u[columns_at_once];
  for (std::size_t first = 0; first < D; first += columns_at_once) {
    const std::size_t n = std::min(columns_at_once, D - first);
    prepare(first, n);
    for (std::size_t i = 0; i < where.size(); ++i) {
      if (!random.words(beside(where[i], first), std::span(word).first(n))) return false;
      uniforms(word.data(), n, u);
      draw(i, first, n, u);
    }
  }
  return true;
}

template <class T>
std::array<double, most_options> in_double(const T* log_p, std::size_t S) {
  std::array<double, most_options> p;
  probabilities(std::span(log_p, S), std::span(p).first(S));
  return p;
}

}  // namespace

template <class T>
void probabilities(std::span<const T> log_p, std::span<double> p) {
  std::copy(log_p.begin(), log_p.end(), p.begin());
  kernels::exp_all(p.data(), p.data(), p.size());
}

template <class T>
void draw_categories(std::span<const T> log_p, std::size_t S, std::span<const int> options, Randomness& random,
                     std::span<const Draw> where, std::span<int> option) {
  const std::size_t D = options.size();
  const auto draw = [&](auto S) {
    alignas(64) Sums sums;
    const auto prepare = [&](std::size_t first, std::size_t n) {
      for_probabilities_of(&log_p[first * S], n, S, [&](auto lane, const auto& p) { put_sums(lane, p, S, sums); });
    };
    return for_uniforms(D, random, where, prepare, [&](std::size_t i, std::size_t first, std::size_t n, const float* u) {
      int* const to = &option[i * D + first];
      if (places(u, sums, n, S, to)) return;
      for (std::size_t d = 0; d < n; ++d)
        if (to[d] < 0) {
          const auto p_in_double = in_double(&log_p[(first + d) * S], S);
          to[d] = random.categorical({p_in_double.data(), S}, beside(where[i], first + d));
        }
    });
  };
  const bool alike = D >= fewest_columns && S >= 2 && S <= most_options && all_are(options, S);
  if (alike && (S == 2   ? draw(std::integral_constant<std::size_t, 2>())
                : S == 3 ? draw(std::integral_constant<std::size_t, 3>())
                         : draw(S)))
    return;
  std::vector<double> p(log_p.size());
  probabilities(log_p, std::span(p));
  for (std::size_t i = 0; i < where.size(); ++i) random.categorical(p, S, options, where[i], option.subspan(i * D, D));
}

std::array<int, 2> antithetic_bits(double of_zero, double of_one, Randomness& random, Draw where) {
  const AntitheticBits pair{of_zero, of_one};
  return pair.bits(random.categorical(pair.law(), where));
}

namespace {

/// u - 1/2 of a uniform number v: p is the smaller of the two probabilities.
double centred(int bit, int other, double p, double v) {
  const double between = (0.5 - p) * (2 * v - 1), end = p * v - 0.5;
  return bit == other ? between : bit ? end : -end;
}

}  // namespace

double centred_number(const std::array<int, 2>& bits, std::span<const double> p, Randomness& random, Draw where) {
  return centred(bits[0], bits[1], std::min(p[0], p[1]), random.uniform(where, {.polynomial = true}));
}

template <class T>
void centred_numbers(std::span<const T> log_p, std::span<const int> first, std::span<const int> second, Randomness& random,
                     Draw where, std::span<T> number) {
  std::array<double, columns_at_once> least, v;
  std::array<std::uint64_t, columns_at_once> word;
  for (std::size_t from = 0; from < number.size(); from += columns_at_once) {
    const std::size_t n = std::min(columns_at_once, number.size() - from);
    for (std::size_t i = 0; i < n; ++i) least[i] = std::min(log_p[2 * (from + i)], log_p[2 * (from + i) + 1]);
    kernels::exp_all(least.data(), least.data(), n);
    if (random.words(beside(where, from), std::span(word).first(n)))  // as `uniform` reads them
      for (std::size_t i = 0; i < n; ++i) v[i] = (static_cast<double>(word[i] >> 11) + 0.5) * 0x1.0p-53;
    else
      for (std::size_t i = 0; i < n; ++i) v[i] = random.uniform(beside(where, from + i), {.polynomial = true});
    for (std::size_t i = 0; i < n; ++i)
      number[from + i] = static_cast<T>(centred(first[from + i], second[from + i], least[i], v[i]));
  }
}

template <class T>
void antithetic_bits(std::span<const T> log_p, Randomness& random, Draw where, std::span<int> first, std::span<int> second) {
  const std::size_t D = first.size();
  const auto one = [&](std::size_t d) {
    const auto p = in_double(&log_p[2 * d], 2);
    const auto [bit, other] = antithetic_bits(p[0], p[1], random, beside(where, d));
    first[d] = bit;
    second[d] = other;
  };
  alignas(64) Sums sums;
  alignas(64) float likelier[columns_at_once];
  const auto prepare = [&](std::size_t from, std::size_t n) {
    for_probabilities_of(&log_p[2 * from], n, std::integral_constant<std::size_t, 2>(), [&](auto lane, const auto& p) {
      lane.store(likelier, xsimd::select(p(1) > p(0), Lane(1.f), Lane(0.f)));
      const Lane differ = xsimd::min(p(0), p(1)), weights[] = {xsimd::abs(p(1) - p(0)), differ, differ};
      put_sums(
          lane, [&](std::size_t o) { return weights[o]; }, 3, sums);
    });
  };
  const auto many = [&](std::size_t, std::size_t from, std::size_t n, const float* u) {
    int outcome[columns_at_once], *bit = &first[from], *other = &second[from];
    const bool sure = places(u, sums, n, std::integral_constant<std::size_t, 3>(), outcome);
    for (std::size_t i = 0; i < n; ++i) {
      const int same = static_cast<int>(likelier[i]);
      bit[i] = outcome[i] == 0 ? same : outcome[i] == 1;
      other[i] = outcome[i] == 0 ? same : outcome[i] == 2;
    }
    for (std::size_t i = 0; !sure && i < n; ++i)
      if (outcome[i] < 0) one(from + i);
  };
  if (D >= fewest_columns && for_uniforms(D, random, {&where, 1}, prepare, many)) return;
  for (std::size_t d = 0; d < D; ++d) one(d);
}

#define HARDGRAD_INSTANTIATE(T)                                                                                            \
  template void probabilities(std::span<const T>, std::span<double>);                                                      \
  template void draw_categories(std::span<const T>, std::size_t, std::span<const int>, Randomness&, std::span<const Draw>, \
                                std::span<int>);                                                                           \
  template void antithetic_bits(std::span<const T>, Randomness&, Draw, std::span<int>, std::span<int>);                    \
  template void centred_numbers(std::span<const T>, std::span<const int>, std::span<const int>, Randomness&, Draw,         \
                                std::span<T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
