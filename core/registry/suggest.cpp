// Suggestions for misspelt names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "core/registry/known_as.hpp"
#include "core/registry/settings.hpp"

namespace hardgrad {
namespace {

// Edit distance (Damerau 1964, Levenshtein 1966): insertions, deletions, substitutions and swaps of neighbours. No letter is
// edited twice. Ignores case.
std::size_t distance(const std::string& a, const std::string& b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      const std::size_t differs = lower(a[i - 1]) != lower(b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differs});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

// "lr" for "learning_rate" and "train.learning_rate": the first letters of the words after the last dot.
std::string initials(const std::string& name) {
  std::string letters;
  bool first = true;
  for (std::size_t i = name.rfind('.') + 1; i < name.size(); ++i) {  // npos + 1 is 0
    if (first && name[i] != '_') letters += name[i];
    first = name[i] == '_';
  }
  return letters;
}

// The only candidate for which `f` holds.
template <class F>
std::optional<std::string> only_one(const std::vector<std::string>& candidates, F f) {
  const auto one = std::find_if(candidates.begin(), candidates.end(), f);
  if (one == candidates.end() || std::find_if(one + 1, candidates.end(), f) != candidates.end()) return {};
  return *one;
}

}  // namespace

std::optional<std::string> nearest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr std::size_t longest_word = 100;  // longer words are not misspelt names
  if (word.empty() || word.size() > longest_word) return {};
  std::optional<std::string> best;
  std::size_t best_distance = 0;
  for (const auto& candidate : candidates) {
    const auto d = distance(word, candidate);
    const auto allowed = std::max<std::size_t>(1, std::max(word.size(), candidate.size()) / 3);
    if (d <= allowed && d < candidate.size() && (!best || d < best_distance)) {
      best = candidate;
      best_distance = d;
    }
  }
  if (best || word.size() < 2) return best;
  const auto short_for = only_one(candidates, [&](const auto& candidate) { return initials(candidate) == word; });
  if (short_for || word.size() < 3) return short_for;
  return only_one(candidates, [&](const auto& candidate) { return candidate.starts_with(word); });
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  if (const auto* known = known_as(word); known && std::count(candidates.begin(), candidates.end(), known->estimator()))
    return fmt::format(" (it is called \"{}\" here)", known->spec);
  if (const auto meant = nearest(word, candidates)) return fmt::format(" (did you mean \"{}\"?)", *meant);
  return candidates.empty() ? " (there are none)" : fmt::format(" (there are: {})", fmt::join(candidates, ", "));
}

}  // namespace hardgrad
