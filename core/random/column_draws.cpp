// An option follows from where u lies between the sums of the probabilities. They are computed in float, which is enough for all
// but a few columns in 100,000. Where u is too near to a sum, the option is drawn from the probabilities in double.
#include "core/random/column_draws.hpp"

#include <cstring>

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

/// The place of u among the sums of the weights, which add up to about 1; -1 where it is too near to one of them.
template <class Weights>
Lane place(const Lane& u, const Weights& weight, std::size_t S) {
  Lane total = weight(0), sum = total, passed(0.f);
  for (std::size_t o = 1; o < S; ++o) total += weight(o);
  const Lane t = u * total;
  auto sure = xsimd::abs(total - Lane(1.f)) < Lane(total_margin);
  for (std::size_t o = 0; o + 1 < S; sum += weight(++o)) {
    passed += xsimd::select(t < sum, Lane(0.f), Lane(1.f));
    sure = sure & (xsimd::abs(t - sum) > Lane(margin));
  }
  return xsimd::select(sure, passed, Lane(-1.f));
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

/// Calls put(first, n, word) for blocks of the columns' words; false if there are none.
template <class F>
bool for_words(std::size_t D, Randomness& random, Draw where, F&& put) {
  alignas(64) std::array<std::uint64_t, columns_at_once> word{};
  for (std::size_t first = 0; first < D; first += columns_at_once) {
    const std::size_t n = std::min(columns_at_once, D - first);
    if (!random.words(where, std::span(word).first(n))) return false;
    put(first, n, word.data());
    where.column += columns_at_once;
  }
  return true;
}

template <class T>
std::array<double, most_options> in_double(const T* log_p, std::size_t S) {
  std::array<double, most_options> p;
  std::copy_n(log_p, S, p.begin());
  kernels::exp_all(p.data(), p.data(), S);
  return p;
}

Draw beside(Draw where, std::size_t d) {
  where.column += static_cast<std::uint32_t>(d);
  return where;
}

}  // namespace

template <class T>
void draw_categories(std::span<const T> log_p, std::size_t S, std::span<const int> options, Randomness& random, Draw where,
                     std::span<int> option) {
  const std::size_t D = options.size();
  const auto draw = [&](auto S) {
    return for_words(D, random, where, [&](std::size_t first, std::size_t n, const std::uint64_t* word) {
      alignas(64) float u[columns_at_once], placed[columns_at_once];
      uniforms(word, n, u);
      for_probabilities_of(&log_p[first * S], n, S,
                           [&](auto lane, const auto& p) { lane.store(placed, place(lane.load(u), p, S)); });
      bool sure = true;
      for (std::size_t i = 0; i < n; ++i) {
        option[first + i] = static_cast<int>(placed[i]);
        sure &= placed[i] >= 0;
      }
      for (std::size_t d = first; !sure && d < first + n; ++d)
        if (option[d] < 0) {
          const auto p_in_double = in_double(&log_p[d * S], S);
          option[d] = random.categorical({p_in_double.data(), S}, beside(where, d));
        }
    });
  };
  const bool alike = D >= fewest_columns && S >= 2 && S <= most_options && all_are(options, S);
  if (alike && (S == 2   ? draw(std::integral_constant<std::size_t, 2>())
                : S == 3 ? draw(std::integral_constant<std::size_t, 3>())
                         : draw(S)))
    return;
  std::vector<double> p(log_p.begin(), log_p.end());
  kernels::exp_all(p.data(), p.data(), p.size());
  random.categorical(p, S, options, where, option);
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
  const auto many = [&](std::size_t from, std::size_t n, const std::uint64_t* word) {
    alignas(64) float u[columns_at_once], bit[columns_at_once], other[columns_at_once];
    uniforms(word, n, u);
    for_probabilities_of(&log_p[2 * from], n, std::integral_constant<std::size_t, 2>(), [&](auto lane, const auto& p) {
      const Lane of_zero = p(0), of_one = p(1), none(0.f), one(1.f);
      const Lane weights[] = {xsimd::abs(of_one - of_zero), xsimd::min(of_zero, of_one), xsimd::min(of_zero, of_one)};
      const Lane outcome = place(
          lane.load(u), [&](std::size_t o) { return weights[o]; }, 3);
      const Lane same = xsimd::select(of_one > of_zero, one, none);
      const auto pick = [&](const Lane& of_first) {
        return xsimd::select(outcome == none, same, xsimd::select(outcome == one, of_first, one - of_first));
      };
      lane.store(bit, xsimd::select(outcome < none, outcome, pick(one)));
      lane.store(other, pick(none));
    });
    bool sure = true;
    for (std::size_t i = 0; i < n; ++i) {
      first[from + i] = static_cast<int>(bit[i]);
      second[from + i] = static_cast<int>(other[i]);
      sure &= bit[i] >= 0;
    }
    for (std::size_t d = from; !sure && d < from + n; ++d)
      if (first[d] < 0) one(d);
  };
  if (D >= fewest_columns && for_words(D, random, where, many)) return;
  for (std::size_t d = 0; d < D; ++d) one(d);
}

#define HARDGRAD_INSTANTIATE(T)                                                                                            \
  template void draw_categories(std::span<const T>, std::size_t, std::span<const int>, Randomness&, Draw, std::span<int>); \
  template void antithetic_bits(std::span<const T>, Randomness&, Draw, std::span<int>, std::span<int>);                    \
  template void centred_numbers(std::span<const T>, std::span<const int>, std::span<const int>, Randomness&, Draw,         \
                                std::span<T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
