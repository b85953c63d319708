#include "core/choice/gumbel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/kernels/functions.hpp"

namespace hardgrad {
namespace {

using kernels::Batch;

void exp_all(std::span<double> x) { kernels::exp_all(x.data(), x.data(), x.size()); }
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

/// Of choices among two: logistic numbers. Each changes its option where it is log p_0 - log p_1; given the option, z is small
/// beyond there.
std::vector<double> logistics(const Cells& cells, std::span<const Draw> where, Randomness& random) {
  std::vector<Draw> places;
  std::vector<double> edges;
  for_choices(
      cells.width, cells.options,
      [&](std::size_t c, std::size_t at) {
        places.push_back(where[c]);
        edges.push_back(cells.log_p[at] - cells.log_p[at + 1]);
      },
      [](std::size_t, std::size_t, std::size_t) {});
  std::vector<double> x(places.size());
  random.logistic(places, edges, x);
  return x;
}

}  // namespace

void perturb(const Cells& cells, std::span<const Draw> where, Randomness& random, std::span<int> option, std::span<double> z) {
  const auto S = cells.width;
  const auto options = cells.options;
  const auto log_p = cells.log_p;
  std::vector<double> gumbel(S > 2 ? z.size() : 0, 1.0);  // u, -log u, log -log u
  const auto none = [](std::size_t, std::size_t) {};
  for_choices(S, options, none, [&](std::size_t c, std::size_t at, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) gumbel[at + i] = uniform(random, where[c], i);
  });
  log_all(gumbel);
  for (double& x : gumbel) x = -x;
  log_all(gumbel);
  const auto logistic = logistics(cells, where, random);
  auto next = logistic.begin();
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {
        z[at] = 0;
        z[at + 1] = log_p[at + 1] - log_p[at] + *next++;
        option[c] = z[at + 1] > 0;
      },
      [&](std::size_t c, std::size_t at, std::size_t n) {
        for (std::size_t i = at; i < at + n; ++i) z[i] = log_p[i] - gumbel[i];
        option[c] = static_cast<int>(std::max_element(&z[at], &z[at] + n) - &z[at]);
      });
}

// Of two options u = q + p v or q v: with L the logit of v or of 1 - v, whichever is the share of u inside its side,
//   |z| = log(1 + e^toward inside) - log(outside),  inside = sig(L), outside = sig(-L)
// where `toward` is phi or -phi, and no exponential is above 1.
void perturb_given(const Cells& cells, std::span<const int> option, std::span<const Draw> where, Randomness& random,
                   std::span<double> z) {
  const auto S = cells.width;
  const auto options = cells.options;
  const auto log_p = cells.log_p;
  const auto toward = [&](std::size_t c, std::size_t at) {
    return option[c] == 1 ? log_p[at + 1] - log_p[at] : log_p[at] - log_p[at + 1];
  };
  auto logistic = logistics(cells, where, random);
  std::vector<double> x(z.size()),
      logs(z.size(), 1.0);  // exponentials: of -|L| and -|phi|, or 1 / p; and what logs are taken of
  auto L = logistic.begin();
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {
        if (option[c] == 0) *L = -*L;
        x[at] = -std::abs(*L++);
        x[at + 1] = -std::abs(toward(c, at));
      },
      [&](std::size_t c, std::size_t at, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
          logs[at + i] = uniform(random, where[c], i);
          x[at + i] = -log_p[at + i];
        }
      });
  exp_all(x);
  if (S > 2) log_all(logs);
  L = logistic.begin();
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {
        const double less = x[at] / (1 + x[at]), inside = *L++ > 0 ? 1 / (1 + x[at]) : less;
        logs[at] = toward(c, at) > 0 ? x[at + 1] + inside : 1 + x[at + 1] * inside;
        logs[at + 1] = 1 + x[at];
      },
      [&](std::size_t c, std::size_t at, std::size_t n) {
        const double top = -logs[at + option[c]];
        for (std::size_t i = at; i < at + n; ++i) logs[i] = (i == at + option[c] ? 0 : -logs[i] * x[i]) + top;
      });
  log_all(logs);
  L = logistic.begin();
  for_choices(
      S, options,
      [&](std::size_t c, std::size_t at) {
        const double length = std::max(toward(c, at), 0.0) + logs[at] + logs[at + 1] + std::max(*L++, 0.0);
        z[at] = 0;
        z[at + 1] = option[c] == 1 ? length : -length;
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

std::vector<double> chosen_after(std::span<const double> p, int option, std::span<const double> move) {
  // c_i < c_b, ascending, in units of the least: the first to be able to overtake comes first. Beyond e^500 nobody is chosen.
  const double top = *std::max_element(move.begin(), move.end());
  const auto c_of = [&](std::size_t i) { return std::exp(std::min(top - move[i], 500.0)); };
  std::vector<std::pair<double, std::size_t>> faster;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (move[i] > move[option]) faster.emplace_back(c_of(i), i);
  std::sort(faster.begin(), faster.end());
  std::vector<double> law(p.size()), within(faster.size() + 1);  // integrals of 1 / (1 + H)^2 from each c to the next
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
