#include "experiments/tasks/algorithm_kinds.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <numeric>

namespace hardgrad::tasks::algorithm {
namespace {

constexpr std::size_t item_vectors = 3;  // vectors per item of associative recall
constexpr std::size_t duplicates = 3;    // copies of each vector of duplicated input

/// Each vector `times` times, a mark, and the vectors again.
void repeat(Example& example, std::size_t times, bool reversed = false) {
  auto all = example.vectors(example.n);
  for (const auto& vector : all)
    for (std::size_t k = 0; k < times; ++k) example.script.show(vector);
  if (reversed) std::reverse(all.begin(), all.end());
  example.script.mark(example.config.bits);
  for (const auto& vector : all) example.script.want(vector);
}
void copy(Example& example) { repeat(example, 1); }
void duplicated_input(Example& example) { repeat(example, duplicates); }
void reverse(Example& example) { repeat(example, 1, true); }

/// The vectors, the number of repetitions, normalised to mean 0 and variance 1, the repetitions and an end.
void repeat_copy(Example& example) {
  auto& [config, draw, n, test, script] = example;
  const auto all = example.vectors(n);
  for (const auto& vector : all) script.show(vector);
  const auto times = test ? config.repeats : 1 + draw.below(config.repeats);
  const auto R = static_cast<double>(config.repeats);
  script.show({}, config.bits + 1, R > 1 ? (static_cast<double>(times) - (R + 1) / 2) / std::sqrt((R * R - 1) / 12) : 0);
  script.input[script.input.size() - 2] = 1;
  for (std::size_t r = 0; r < times; ++r)
    for (const auto& vector : all) script.want(vector);
  script.want_end();
}

/// Each item after a mark; then one item between other marks; answer: the next item.
void associative_recall(Example& example) {
  auto& [config, draw, n, test, script] = example;
  const auto all = example.vectors(n * item_vectors);
  const auto item = [&](std::size_t k) { return std::span(all).subspan(k * item_vectors, item_vectors); };
  for (std::size_t k = 0; k < n; ++k) {
    script.mark(config.bits);
    for (const auto& vector : item(k)) script.show(vector);
  }
  const auto asked = draw.below(n - 1);
  script.mark(config.bits + 1);
  for (const auto& vector : item(asked)) script.show(vector);
  script.mark(config.bits + 1);
  for (const auto& vector : item(asked + 1)) script.want(vector);
}

std::size_t kept(std::size_t sorted) { return (4 * sorted + 4) / 5; }

/// A priority in (-1, 1) with each vector; answer: the highest, in order.
void priority_sort(Example& example) {
  auto& [config, draw, n, test, script] = example;
  const auto all = example.vectors(n);
  std::vector<double> priority(n);
  for (std::size_t k = 0; k < n; ++k) {
    priority[k] = 2 * draw.numbered(static_cast<std::uint32_t>(k)) - 1;
    script.show(all[k], config.bits, priority[k]);
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return priority[a] > priority[b]; });
  script.mark(config.bits + 1);
  for (std::size_t k = 0; k < kept(n); ++k) script.want(all[order[k]]);
}

void ngrams(Example& example) {
  auto& [config, draw, n, test, script] = example;
  auto all = example.vectors(config.context);
  while (all.size() < n) {
    auto& vector = all.emplace_back(config.bits);
    for (std::size_t d = 0; d < config.bits; ++d) {
      auto of = static_cast<std::uint32_t>(d);  // of the table
      for (std::size_t k = 2; k < config.context + 2; ++k) of = 2 * of + static_cast<std::uint32_t>(all[all.size() - k][d]);
      const double angle = std::numbers::pi / 2 * draw.numbered(of);  // its squared sine has the law Beta(1/2, 1/2)
      vector[d] = draw.chance(std::sin(angle) * std::sin(angle));
    }
  }
  for (std::size_t t = 0; t + 1 < n; ++t)
    if (t + 1 < config.context)
      script.show(all[t]);
    else
      script.predict(all[t], all[t + 1]);
}

}  // namespace

const Kind kinds[7] = {
    {.name = "copy", .make = copy},
    {.name = "duplicated_input",
     .make = duplicated_input,
     .shown = [](const Config&, std::size_t n) { return duplicates * n + 1; }},
    {.name = "repeat_copy",
     .make = repeat_copy,
     .marks = 2,
     .ends = 1,
     .wanted = [](const Config& config, std::size_t n) { return n * config.repeats + 1; }},
    {.name = "associative_recall",
     .make = associative_recall,
     .marks = 2,
     .shown = [](const Config&, std::size_t n) { return n * (1 + item_vectors) + 2 + item_vectors; },
     .wanted = [](const Config&, std::size_t) { return item_vectors; },
     .kept = [](const Config&, std::size_t n) { return n * item_vectors; },
     .too_short = [](const Config& config) -> std::string {
       if (config.min_length >= 2) return "";
       return fmt::format("associative_recall needs min_length of at least 2 items, got {}", config.min_length);
     }},
    {.name = "priority_sort",
     .make = priority_sort,
     .marks = 2,
     .wanted = [](const Config&, std::size_t n) { return kept(n); }},
    {.name = "reverse", .make = reverse},
    {.name = "ngrams",
     .make = ngrams,
     .marks = 0,
     .shown = [](const Config& config, std::size_t) { return config.context - 1; },
     .wanted = [](const Config& config, std::size_t n) { return n - config.context; },  // the last vector is only predicted
     .kept = [](const Config&, std::size_t) { return std::size_t{0}; },
     .too_short = [](const Config& config) -> std::string {
       if (config.min_length > config.context) return "";
       return fmt::format("ngrams of context={} need min_length of at least {}, got {}", config.context, config.context + 1,
                          config.min_length);
     }},
};

}  // namespace hardgrad::tasks::algorithm
