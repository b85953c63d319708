#include "core/choice/gumbel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/functions.hpp"

namespace hardgrad {
namespace {

using kernels::Batch;

void exp_all(std::span<double> x) {
  kernels::map(x.data(), x.data(), x.size(), [](const Batch<double>& v) { return kernels::exp<double>(v); });
}
void log_all(std::span<double> x) {
  kernels::map(x.data(), x.data(), x.size(), [](const Batch<double>& v) { return kernels::log<double>(v); });
}

/// pair(cell, its S numbers' place) of choices among two, more(cell, place, options) of those among more.
template <class Pair, class More>
void for_choices(std::size_t width, std::span<const int> options, Pair pair, More more) {
  for (std::size_t c = 0; c < options.size(); ++c) {
    if (options[c] == 2) pair(c, c * width);
    if (options[c] > 2) more(c, c * width, static_cast<std::size_t>(options[c]));
  }
}

double uniform(Randomness& random, Draw where, std::size_t i) {
  where.index += static_cast<std::uint32_t>(i);
  return random.uniform(where);
}

}  // namespace

void perturb(const Cells& cells, std::span<const Draw> where, Randomness& random, std::span<int> option, std::span<double> z) {
  const auto S = cells.width;
  const auto options = cells.options;
  const auto log_p = cells.log_p;
  std::vector<double> x(z.size(), 1.0), p(log_p.begin(), log_p.end());  // u and 1 - u, or u of every option
  exp_all(p);
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {
        x[at] = random.uniform(where[c], {.breaks = std::span(p).subspan(at, 1)});  // there the option changes
        x[at + 1] = 1 - x[at];
      },
      [&](std::size_t c, std::size_t at, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) x[at + i] = uniform(random, where[c], i);
      });
  log_all(x);
  std::vector<double> gumbel;
  if (S > 2) {
    gumbel.resize(x.size());
    std::transform(x.begin(), x.end(), gumbel.begin(), [](double log_u) { return -log_u; });
    log_all(gumbel);
  }
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {
        z[at] = 0;
        z[at + 1] = log_p[at + 1] - log_p[at] + x[at] - x[at + 1];
        option[c] = z[at + 1] > 0;
      },
      [&](std::size_t c, std::size_t at, std::size_t n) {
        for (std::size_t i = at; i < at + n; ++i) z[i] = log_p[i] - gumbel[i];
        option[c] = static_cast<int>(std::max_element(&z[at], &z[at] + n) - &z[at]);
      });
}

// Of two options u = q + p v or q v: z = log(1 + e^phi v) - log(1 - v) or log v - log(1 + e^-phi (1 - v)), no exponential
// above 1.
void perturb_given(const Cells& cells, std::span<const int> option, std::span<const Draw> where, Randomness& random,
                   std::span<double> z) {
  const auto S = cells.width;
  const auto options = cells.options;
  const auto log_p = cells.log_p;
  const auto phi = [&](std::size_t at) { return log_p[at + 1] - log_p[at]; };
  std::vector<double> x(z.size(), 1.0), inverse(z.size());  // E, or the share of u inside its side; 1 / p, or e^-|phi|
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {
        x[at] = random.uniform(where[c]);
        inverse[at] = -std::abs(phi(at));
      },
      [&](std::size_t c, std::size_t at, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
          x[at + i] = uniform(random, where[c], i);
          inverse[at + i] = -log_p[at + i];
        }
      });
  exp_all(inverse);
  auto logs = x;
  if (S > 2) log_all(logs);
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {  // log(1 + e^toward inside), and its subtrahend or minuend
        const double v = x[at], inside = option[c] == 1 ? v : 1 - v, toward = option[c] == 1 ? phi(at) : -phi(at);
        logs[at] = toward > 0 ? inverse[at] + inside : 1 + inverse[at] * inside;
        logs[at + 1] = option[c] == 1 ? 1 - v : v;
      },
      [&](std::size_t c, std::size_t at, std::size_t n) {
        const double top = -logs[at + option[c]];
        for (std::size_t i = at; i < at + n; ++i) logs[i] = (i == at + option[c] ? 0 : -logs[i] * inverse[i]) + top;
      });
  log_all(logs);
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {
        const double toward = option[c] == 1 ? phi(at) : -phi(at), grown = std::max(toward, 0.0) + logs[at];
        z[at] = 0;
        z[at + 1] = option[c] == 1 ? grown - logs[at + 1] : logs[at + 1] - grown;
      },
      [&](std::size_t, std::size_t at, std::size_t n) {
        for (std::size_t i = at; i < at + n; ++i) z[i] = -logs[i];
      });
}

void followed(const Cells& cells, std::span<const int> option, std::span<const double> z, std::span<double> share) {
  const auto S = cells.width;
  const auto options = cells.options;
  const auto log_p = cells.log_p;
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {
        const double logistic = z[at + 1] - z[at] - (log_p[at + 1] - log_p[at]);
        share[at] = log_p[at + 1 - option[c]];
        share[at + 1] = share[at] - (option[c] == 1 ? logistic : -logistic);
      },
      [&](std::size_t c, std::size_t at, std::size_t n) {
        for (std::size_t i = at; i < at + n; ++i) share[i] = z[i] - z[at + option[c]];
      });
  exp_all(share);
  for_choices(
      S, options, [&](std::size_t, std::size_t at) { share[at] = share[at + 1] = 1 - (share[at] + share[at + 1]); },
      [&](std::size_t, std::size_t at, std::size_t n) {
        for (std::size_t i = at; i < at + n; ++i) share[i] = 1 - share[i];
      });
}

void relaxed(std::size_t width, std::span<const int> options, std::span<const double> z, double temperature,
             std::span<double> w) {
  std::fill(w.begin(), w.end(), -std::numeric_limits<double>::infinity());
  for_choices(
      width, options, [&](std::size_t, std::size_t at) { w[at] = w[at + 1] = -std::abs(z[at + 1] - z[at]) / temperature; },
      [&](std::size_t, std::size_t at, std::size_t n) {
        const double most = *std::max_element(&z[at], &z[at] + n);
        for (std::size_t i = at; i < at + n; ++i) w[i] = (z[i] - most) / temperature;
      });
  exp_all(w);
  for_choices(
      width, options,
      [&](std::size_t, std::size_t at) {
        const bool second = z[at + 1] > z[at];
        const double less = w[at] / (1 + w[at]), more = 1 / (1 + w[at + 1]);
        w[at] = second ? less : more;
        w[at + 1] = second ? more : less;
      },
      [&](std::size_t, std::size_t at, std::size_t n) {
        double sum = 0;
        for (std::size_t i = at; i < at + n; ++i) sum += w[i];
        for (std::size_t i = at; i < at + n; ++i) w[i] /= sum;
      });
}

}  // namespace hardgrad
