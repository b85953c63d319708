// What a model declares of its sites before it runs, and what follows from that.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/choice/site_kind.hpp"

namespace hardgrad {

struct Dreams;

/// What a choice changes besides costs on the rows of its own answer.
enum class Reach {
  own_costs,     ///< nothing: no other choice's rows see it
  later_costs,   ///< costs that other choices change too, but no other choice's distribution
  later_choices  ///< the distributions of later choices
};

/// A place where the model asks.
struct SiteDeclaration {
  std::string name;     ///< in files, pages and refusals
  int options = 0;      ///< most options of a choice; of numbers none
  int times = 1;        ///< how often it is asked in the longest run
  int state_width = 0;  ///< columns of Site::state
  Reach reach = Reach::later_choices;
  SiteKind kind = SiteKind::categorical;
  int columns = 1;  ///< most choices asked at once: independent of each other given everything before

  /// Sets of options of one question, at most; of numbers, of `nodes` for each column.
  double sets(int nodes) const { return std::pow(kind.options ? options : nodes, columns); }
};

/// What may be known of a model before it runs.
struct Structure {
  std::vector<SiteDeclaration> sites;  ///< in the order in which they are first asked; empty: the model makes no choice
  bool posterior = false;              ///< every site offers a learned posterior
  const Dreams* dreams = nullptr;      ///< how it draws what it is judged by (core/models/dreams.hpp); null if it cannot

  /// Questions in the longest run.
  int steps() const {
    int sum = 0;
    for (const auto& site : sites) sum += site.times;
    return sum;
  }
  /// True if some choices are numbers.
  bool numbers() const {
    return std::any_of(sites.begin(), sites.end(), [](const auto& site) { return !site.kind.options; });
  }
  /// Points of a quadrature for each column, where choices are numbers and truth is to be had of a product of rules: as many as
  /// make no more than some ten thousand rows.
  int nodes() const {
    int numbers = 0;
    for (const auto& site : sites) numbers += site.kind.options ? 0 : site.times * site.columns;
    return numbers <= 2 ? 32 : numbers == 3 ? 24 : numbers == 4 ? 12 : 8;
  }
  int most_options() const { return most(&SiteDeclaration::options); }
  int most_columns() const { return most(&SiteDeclaration::columns); }
  int state_width() const { return most(&SiteDeclaration::state_width); }
  /// Sets of options (or nodes) of one question, at most.
  double most_sets() const {
    double largest = 0;
    for (const auto& site : sites) largest = std::max(largest, site.sets(nodes()));
    return largest;
  }
  /// True if a choice changes only costs of its own: choices can be enumerated one by one.
  bool factorised() const { return steps() <= 1 || reach() == Reach::own_costs; }
  /// True if no choice changes the distribution of another.
  bool independent() const { return steps() <= 1 || reach() != Reach::later_choices; }
  /// "no choice", "one choice", "factorised", "joint cost" or "sequential".
  std::string dependence() const {
    if (steps() <= 1) return sites.empty() ? "no choice" : "one choice";
    return factorised() ? "factorised" : independent() ? "joint cost" : "sequential";
  }

 private:
  int most(int SiteDeclaration::*field) const {
    int largest = 0;
    for (const auto& site : sites) largest = std::max(largest, site.*field);
    return largest;
  }
  Reach reach() const {
    auto farthest = Reach::own_costs;
    for (const auto& site : sites) farthest = std::max(farthest, site.reach);
    return farthest;
  }
};

}  // namespace hardgrad
