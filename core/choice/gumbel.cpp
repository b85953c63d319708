#include "core/choice/gumbel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/kernels/functions.hpp"
#include "core/support/array.hpp"

namespace hardgrad {
namespace {

using kernels::Batch;
using Wide = Batch<double>;

void exp_all(std::span<double> x) { kernels::exp_all(x.data(), x.data(), x.size()); }
void log_all(std::span<double> x) {
  kernels::map(x.data(), x.data(), x.size(), [](const Batch<double>& v) { return kernels::log<double>(v); });
}

/// Calls more(choice, offset of its S numbers, number of options) for every choice with more than two options.
template <class More>
void for_more(std::size_t width, std::span<const int> options, More more) {
  if (width == 2) return;
  for (std::size_t c = 0; c < options.size(); ++c)
    if (options[c] > 2) more(c, c * width, static_cast<std::size_t>(options[c]));
}

/// Two-option choices are processed in blocks of this size.
constexpr std::size_t block = 256;
using BlockOfNumbers = double[block];

/// Consecutive choices with S = 2. The compiler knows the stride and vectorises the loops.
struct InARow {
  std::size_t from, count;
  std::size_t choice(std::size_t i) const { return from + i; }
  std::size_t at(std::size_t i) const { return 2 * (from + i); }  ///< offset of its two numbers
};
/// Two-option choices among choices with other numbers of options.
struct Scattered {
  std::size_t width, count = 0;
  std::array<std::size_t, block> choices = {};
  std::size_t choice(std::size_t i) const { return choices[i]; }
  std::size_t at(std::size_t i) const { return width * choices[i]; }
};

bool all_pairs(std::size_t width, std::span<const int> options) { return width == 2 && all_are(options, 2); }

/// Calls f(choices, number of earlier two-option choices) for blocks of two-option choices, in order.
template <class F>
void for_pairs(std::size_t width, std::span<const int> options, F f) {
  if (all_pairs(width, options)) {
    for (std::size_t from = 0; from < options.size(); from += block)
      f(InARow{from, std::min(block, options.size() - from)}, from);
    return;
  }
  Scattered pairs{width};
  std::size_t before = 0;
  const auto pass = [&] {
    f(pairs, before);
    before += std::exchange(pairs.count, 0);
  };
  for (std::size_t c = 0; c < options.size(); ++c) {
    if (options[c] == 2) pairs.choices[pairs.count++] = c;
    if (pairs.count == block) pass();
  }
  if (pairs.count > 0) pass();
}

/// x_1 - x_0
template <class Pairs>
void differences(const Pairs& choices, std::span<const double> x, BlockOfNumbers& d) {
  for (std::size_t i = 0; i < choices.count; ++i) d[i] = x[choices.at(i) + 1] - x[choices.at(i)];
}

/// z = (0, x)
template <class Pairs>
void put(const Pairs& choices, const BlockOfNumbers& x, std::span<double> z) {
  for (std::size_t i = 0; i < choices.count; ++i) {
    z[choices.at(i)] = 0;
    z[choices.at(i) + 1] = x[i];
  }
}

/// The place of choice c of C.
Draw place(std::span<const Draw> where, std::size_t c, std::size_t C) {
  if (where.size() == C) return where[c];
  const std::size_t D = C / where.size();
  auto of_row = where[c / D];
  of_row.column += static_cast<std::uint32_t>(c % D);
  return of_row;
}

/// Uniform numbers u [n] of a choice.
void uniforms(Randomness& random, Draw where, std::span<double> u) {
  for (double& x : u) {
    x = random.uniform(where);
    ++where.index;
  }
}

/// The same given option b, for `Randomness::options_first`. The estimate varies where another z comes near that of b: the pieces
/// of u there are passed as breaks. E = -log u.
void uniforms_near_ties(Randomness& random, Draw where, int b, std::span<const double> log_p, std::span<double> u) {
  const auto at = [&](std::size_t i) {
    auto place = where;
    place.index += static_cast<std::uint32_t>(i);
    return place;
  };
  const auto chosen = static_cast<std::size_t>(b);
  u[chosen] = random.uniform(at(chosen));
  for (std::size_t i = 0; i < u.size(); ++i) {
    if (i == chosen) continue;
    std::array<double, 2> breaks;  // where z_b - z_i = log(1 + E_i / (p_i E_b)) is 1, and where it is 0.05
    const double rate = -std::log(u[chosen]) * std::exp(log_p[i]);
    for (std::size_t k = 0; k < 2; ++k) breaks[k] = std::exp(-rate * std::expm1(k == 0 ? 1.0 : 0.05));
    u[i] = random.uniform(at(i), {.breaks = breaks});
  }
}

/// A logistic number for every two-option choice. Its option changes at log p_0 - log p_1, which is passed as the draw's edge.
std::vector<double> logistics(const Categories& choices, std::span<const Draw> where, Randomness& random) {
  std::vector<Draw> places;
  std::vector<double> edges(choices.options.size());
  const bool all = all_pairs(choices.width, choices.options);
  if (!all) places.resize(choices.options.size());
  std::size_t count = 0;
  for_pairs(choices.width, choices.options, [&](const auto& pairs, std::size_t before) {
    for (std::size_t i = 0; i < pairs.count; ++i)
      edges[before + i] = choices.log_p[pairs.at(i)] - choices.log_p[pairs.at(i) + 1];
    for (std::size_t i = 0; i < pairs.count && !all; ++i)
      places[before + i] = place(where, pairs.choice(i), choices.options.size());
    count = before + pairs.count;
  });
  std::vector<double> x(count);
  random.logistic(all ? where : std::span<const Draw>(places).first(count), std::span(edges).first(count), x);
  return x;
}

/// `perturb`, with the options drawn before the noise.
void perturb_options_first(const Categories& choices, std::span<const Draw> where, Randomness& random, std::span<int> option,
                           std::span<double> z) {
  const auto S = choices.width;
  std::vector<double> p(choices.log_p.begin(), choices.log_p.end());
  exp_all(p);
  for (std::size_t c = 0; c < option.size(); ++c) {
    auto at = place(where, c, option.size());
    at.index ^= option_index;
    const auto n = static_cast<std::size_t>(choices.options[c]);
    if (n > 1) option[c] = random.categorical(std::span(p).subspan(c * S, n), at);
  }
  perturb_given(choices, option, where, random, z);
}

}  // namespace

void perturb(const Categories& choices, std::span<const Draw> where, Randomness& random, std::span<int> option,
             std::span<double> z) {
  const auto S = choices.width;
  if (S > 2 && random.options_first()) return perturb_options_first(choices, where, random, option, z);
  const auto options = choices.options;
  const auto log_p = choices.log_p;
  std::vector<double> gumbel(S > 2 ? z.size() : 0, 1.0);  // u, -log u, log -log u
  for_more(S, options, [&](std::size_t c, std::size_t at, std::size_t n) {
    uniforms(random, place(where, c, options.size()), std::span(gumbel).subspan(at, n));
  });
  log_all(gumbel);
  for (double& x : gumbel) x = -x;
  log_all(gumbel);
  for_more(S, options, [&](std::size_t c, std::size_t at, std::size_t n) {
    for (std::size_t i = at; i < at + n; ++i) z[i] = log_p[i] - gumbel[i];
    option[c] = static_cast<int>(std::max_element(&z[at], &z[at] + n) - &z[at]);
  });
  const auto logistic = logistics(choices, where, random);
  for_pairs(S, options, [&](const auto& pairs, std::size_t before) {
    BlockOfNumbers x;
    differences(pairs, log_p, x);
    for (std::size_t i = 0; i < pairs.count; ++i) x[i] += logistic[before + i];
    put(pairs, x, z);
    for (std::size_t i = 0; i < pairs.count; ++i) option[pairs.choice(i)] = x[i] > 0;
  });
}

void perturb_given(const Categories& choices, std::span<const int> option, std::span<const Draw> where, Randomness& random,
                   std::span<double> z) {
  const auto S = choices.width;
  const auto options = choices.options;
  const auto log_p = choices.log_p;
  const auto logistic = logistics(choices, where, random);
  if (S > 2) {
    std::vector<double> x(z.size()), logs(z.size(), 1.0);  // x: 1 / p; logs: arguments, then values, of logarithms
    for_more(S, options, [&](std::size_t c, std::size_t at, std::size_t n) {
      const auto u = std::span(logs).subspan(at, n);
      if (random.options_first())
        uniforms_near_ties(random, place(where, c, options.size()), option[c], log_p.subspan(at, n), u);
      else
        uniforms(random, place(where, c, options.size()), u);
      for (std::size_t i = at; i < at + n; ++i) x[i] = -log_p[i];
    });
    exp_all(x);
    log_all(logs);
    for_more(S, options, [&](std::size_t c, std::size_t at, std::size_t n) {
      const double top = -logs[at + option[c]];
      for (std::size_t i = at; i < at + n; ++i) logs[i] = (i == at + option[c] ? 0 : -logs[i] * x[i]) + top;
    });
    log_all(logs);
    for_more(S, options, [&](std::size_t, std::size_t at, std::size_t n) {
      for (std::size_t i = at; i < at + n; ++i) z[i] = -logs[i];
    });
  }
  for_pairs(S, options, [&](const auto& pairs, std::size_t before) {
    BlockOfNumbers sign, x;
    for (std::size_t i = 0; i < pairs.count; ++i) {
      const int taken = option[pairs.choice(i)];
      const double of_zero = log_p[pairs.at(i)], of_one = log_p[pairs.at(i) + 1];  // both read: no unpredictable branch
      sign[i] = 2 * taken - 1;
      x[i] = sign[i] * logistic[before + i] - (taken == 1 ? of_zero : of_one);
    }
    kernels::for_lanes<double>(pairs.count, [&](auto lane) {
      const Wide a = lane.load(x), small = kernels::exp<double>(-xsimd::abs(a));
      lane.store(x, lane.load(sign) * (xsimd::max(a, Wide(0.0)) + kernels::log1p_unit<double>(small)));
    });
    put(pairs, x, z);
  });
}

void followed(std::size_t S, std::span<const int> options, std::span<const double> p, std::span<const int> option,
              std::span<const double> z, std::span<double> share) {
  if (S > 2) {
    for_more(S, options, [&](std::size_t c, std::size_t at, std::size_t n) {
      for (std::size_t i = at; i < at + n; ++i) share[i] = z[i] - z[at + option[c]];
    });
    exp_all(share);
    for_more(S, options, [&](std::size_t, std::size_t at, std::size_t n) {
      for (std::size_t i = at; i < at + n; ++i) share[i] = 1 - share[i];
    });
  }
  for_pairs(S, options, [&](const auto& pairs, std::size_t) {
    BlockOfNumbers x;
    differences(pairs, z, x);
    kernels::map(x, x, pairs.count, [](const Wide& d) { return Wide(1.0) - kernels::exp<double>(-xsimd::abs(d)); });
    for (std::size_t i = 0; i < pairs.count; ++i) {
      const double of_zero = p[pairs.at(i)], of_one = p[pairs.at(i) + 1];
      share[pairs.at(i)] = share[pairs.at(i) + 1] = (option[pairs.choice(i)] == 1 ? of_one : of_zero) * x[i];
    }
  });
}

std::vector<double> chosen_after(std::span<const double> p, int option, std::span<const double> move) {
  // The options with c_i < c_b, ascending, relative to the least c. Exponents are capped at 500: the mass beyond is negligible.
  const double top = *std::max_element(move.begin(), move.end());
  const auto c_of = [&](std::size_t i) { return std::exp(std::min(top - move[i], 500.0)); };
  std::vector<std::pair<double, std::size_t>> faster;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (move[i] > move[option]) faster.emplace_back(c_of(i), i);
  std::sort(faster.begin(), faster.end());
  std::vector<double> law(p.size()), within(faster.size() + 1);  // within: integrals of 1 / (1 + H)^2 from each c to the next
  double H = 0, slope = 0;
  for (std::size_t m = 0; m < faster.size(); ++m) {
    const auto [c, i] = faster[m];
    const double length = (m + 1 < faster.size() ? faster[m + 1].first : c_of(option)) - c;
    slope += p[i] / c;
    const double next = H + slope * length;
    within[m] = length / ((1 + H) * (1 + next));
    H = next;
  }
  law[option] = 1 / (1 + H);
  for (std::size_t m = faster.size(); m-- > 0;) {
    within[m] += within[m + 1];
    law[faster[m].second] = p[faster[m].second] / faster[m].first * within[m];
  }
  return law;
}

template <class T>
void relaxed(std::size_t width, std::span<const int> options, std::span<const double> z, double temperature, std::span<T> w) {
  if (!all_pairs(width, options)) {
    std::fill(w.begin(), w.end(), -std::numeric_limits<T>::infinity());
    for_more(width, options, [&](std::size_t, std::size_t at, std::size_t n) {
      const double most = *std::max_element(&z[at], &z[at] + n);
      for (std::size_t i = at; i < at + n; ++i) w[i] = static_cast<T>((z[i] - most) / temperature);
    });
    kernels::exp_all(w.data(), w.data(), w.size());
    for_more(width, options, [&](std::size_t, std::size_t at, std::size_t n) {
      T sum{0};
      for (std::size_t i = at; i < at + n; ++i) sum += w[i];
      for (std::size_t i = at; i < at + n; ++i) w[i] /= sum;
    });
  }
  for_pairs(width, options, [&](const auto& pairs, std::size_t) {
    T first[block], second[block];
    for (std::size_t i = 0; i < pairs.count; ++i)
      second[i] = static_cast<T>((z[pairs.at(i) + 1] - z[pairs.at(i)]) / temperature);
    kernels::for_lanes<T>(pairs.count, [&](auto lane) {
      const Batch<T> d = lane.load(second), one(T{1}), small = kernels::exp<T>(-xsimd::abs(d));
      const Batch<T> more = one / (one + small), less = small * more;
      lane.store(first, xsimd::select(d > Batch<T>(T{0}), less, more));
      lane.store(second, xsimd::select(d > Batch<T>(T{0}), more, less));
    });
    for (std::size_t i = 0; i < pairs.count; ++i) {
      w[pairs.at(i)] = first[i];
      w[pairs.at(i) + 1] = second[i];
    }
  });
}

template void relaxed(std::size_t, std::span<const int>, std::span<const double>, double, std::span<float>);
template void relaxed(std::size_t, std::span<const int>, std::span<const double>, double, std::span<double>);

}  // namespace hardgrad
