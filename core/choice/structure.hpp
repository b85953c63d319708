// What a model declares of its sites before it runs, and what follows from that.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "core/choice/site_kind.hpp"

namespace hardgrad {

struct Dreams;

/// What a choice changes besides costs on the rows of its own answer.
enum class Reach {
  own_column,    ///< nothing: each column's costs are its own (Episode::cost by column)
  own_costs,     ///< nothing: no other step's rows see it; the columns of its own step share their costs
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

  /// Rows that enumerate one question, at most: sets of options (of numbers, of `nodes` for each column), or options where
  /// columns are enumerated side by side.
  double sets(int nodes) const {
    const int each = kind.options ? options : nodes;
    return reach == Reach::own_column ? each : std::pow(each, columns);
  }
};

/// What may be known of a model before it runs.
struct Structure {
  std::vector<SiteDeclaration> sites;  ///< in the order in which they are first asked; empty: the model makes no choice
  bool posterior = false;              ///< every site offers a learned posterior
  double steepest = 0;  ///< exponent a of the loss's slope, |distance|^a, where it is infinite between options; 0: nowhere
  const Dreams* dreams = nullptr;  ///< how it draws what it is judged by (core/models/parts/dreams.hpp); null if it cannot

  /// Questions in the longest run.
  int steps() const {
    int sum = 0;
    for (const auto& site : sites) sum += site.times;
    return sum;
  }
  /// Choices in the longest run: the columns of all questions.
  int choices() const {
    int sum = 0;
    for (const auto& site : sites) sum += site.times * site.columns;
    return sum;
  }
  /// The site of this name; null if none is declared.
  const SiteDeclaration* site(std::string_view name) const {
    const auto found = std::find_if(sites.begin(), sites.end(), [&](const auto& site) { return site.name == name; });
    return found == sites.end() ? nullptr : &*found;
  }
  /// True if some choices are numbers.
  bool numbers() const {
    return std::any_of(sites.begin(), sites.end(), [](const auto& site) { return !site.kind.options; });
  }
  /// Points of a quadrature for each column, where choices are numbers and truth is to be had of a product of rules: as many as
  /// make no more than some ten thousand rows.
  int nodes() const {
    int product = 0;
    for (const auto& site : sites)
      if (!site.kind.options) product += site.times * (site.reach == Reach::own_column ? 1 : site.columns);
    return product <= 2 ? 32 : product == 3 ? 24 : product == 4 ? 12 : 8;
  }
  int most_options() const { return most(&SiteDeclaration::options); }
  int most_columns() const { return most(&SiteDeclaration::columns); }
  int state_width() const { return most(&SiteDeclaration::state_width); }
  /// Rows that enumerate one question, at most.
  double most_sets() const {
    double largest = 0;
    for (const auto& site : sites) largest = std::max(largest, site.sets(nodes()));
    return largest;
  }
  /// True if a choice changes only costs of its own: choices can be enumerated one by one.
  bool factorised() const {
    return choices() <= 1 || reach() == Reach::own_column || (reach() == Reach::own_costs && most_columns() <= 1);
  }
  /// True if the choices of a question change only costs of its own: questions can be enumerated one by one.
  bool steps_apart() const { return steps() <= 1 || reach() <= Reach::own_costs; }
  /// True if no choice changes the distribution of another.
  bool independent() const { return steps() <= 1 || reach() != Reach::later_choices; }
  /// "no choice", "one choice", "factorised", "factorised by step" (the columns of a step share their costs), "joint cost" or
  /// "sequential".
  std::string dependence() const {
    if (choices() <= 1) return sites.empty() ? "no choice" : "one choice";
    if (factorised()) return "factorised";
    if (steps_apart() && steps() > 1) return "factorised by step";
    return independent() ? "joint cost" : "sequential";
  }

 private:
  int most(int SiteDeclaration::*field) const {
    int largest = 0;
    for (const auto& site : sites) largest = std::max(largest, site.*field);
    return largest;
  }
  Reach reach() const {
    auto farthest = Reach::own_column;
    for (const auto& site : sites) farthest = std::max(farthest, site.reach);
    return farthest;
  }
};

}  // namespace hardgrad
