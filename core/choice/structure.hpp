// The sites that a model declares before it runs, and properties derived from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "core/choice/site_kind.hpp"

namespace hardgrad {

struct AnswerSampler;

/// Number of subsets of `subset_size` of the options (of all, if they are fewer).
inline double subsets_of(int options, int subset_size) {
  double count = 1;
  for (int i = 1; i <= std::min(subset_size, options - subset_size); ++i) count = count * (options - i + 1) / i;
  return std::round(count);
}

/// The costs and choices that a choice can change.
enum class DependenceScope {
  own_column,    ///< only the costs of its own column (Episode::cost by column)
  own_costs,     ///< only the costs of its own step, which the step's columns share
  later_costs,   ///< also costs that depend on other steps' choices, but no other choice's distribution
  later_choices  ///< also the distributions of later choices
};

/// A named kind of question of the model.
struct SiteDeclaration {
  std::string name;     ///< in files, pages and messages
  int options = 0;      ///< most options of a choice; 0 for numbers
  int subset_size = 1;  ///< options that a choice picks, at most; more than 1 for subsets only
  int times = 1;        ///< number of questions in the longest run
  int state_width = 0;  ///< columns of Site::state
  DependenceScope scope = DependenceScope::later_choices;
  SiteKind kind = SiteKind::categorical;
  int columns = 1;     ///< most choices asked at once, independent given all earlier choices
  bool codes = false;  ///< its options are points of a space (Site::codes)
  bool fewer = false;  ///< some choices pick fewer options than `subset_size`, though they have more

  /// Most answers of one choice: its options, or its subsets. 0 for numbers.
  double support_size() const {  // of k up to `subset_size`, if some choices pick fewer
    return kind.several ? subsets_of(options, fewer ? std::min(subset_size, options / 2) : subset_size) : options;
  }
  /// Most rows that enumerate one question: sets of options (for numbers, of `nodes` quadrature points per column), or options
  /// if columns are enumerated side by side.
  double sets(int nodes) const {
    const double each = kind.options ? support_size() : nodes;
    return scope == DependenceScope::own_column ? each : std::pow(each, columns);
  }
};

/// A model's declaration.
struct Structure {
  std::vector<SiteDeclaration> sites;  ///< in the order in which they are first asked; empty: the model makes no choice
  bool posterior = false;              ///< every site has a learned posterior
  const char* no_posterior = "";       ///< why the model never has a learned posterior; empty if it can have one
  bool behaviour = false;              ///< every site has a behaviour policy other than its prior (Site::behaviour)
  bool reference = false;              ///< every site has a reference policy (Site::reference)
  const char* joins = "";              ///< the cost that depends on all examples of the batch; empty: each has its own costs
  bool rewards = false;                ///< every loss is a reward of at least 0 with the sign changed
  static constexpr const char* lacks_rewards =
      "the model has no rewards of at least 0, as writer or translator[words=sampled] has";
  static constexpr const char* lacks_reference =
      "the model has no reference policy: name a checkpoint (--reference, train.reference) or take writer[reference=uniform]";
  /// If the loss's slope is infinite at a point between the options, like |distance|^a, the exponent a < 0; otherwise 0.
  double steepest = 0;
  const AnswerSampler* answer_sampler = nullptr;  ///< draws labels from the model; null if it cannot

  const char* no_likelihood = "";  ///< why the losses are not -log p(answer), such as rewards; empty if they may be

  /// The message where exp(-loss) has to be a probability.
  std::string lacks_likelihood() const {
    return std::string("exp(-loss) is no probability of the answer with ") + no_likelihood +
           ": take target expected_loss or elbo";
  }
  /// The message where a learned posterior is needed and missing.
  std::string lacks_posterior() const {
    return std::string("the model has no learned posterior") + (*no_posterior ? ": " : "") + no_posterior;
  }
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
    const auto position = std::find_if(sites.begin(), sites.end(), [&](const auto& site) { return site.name == name; });
    return position == sites.end() ? nullptr : &*position;
  }
  /// True if some choices are numbers.
  bool numbers() const {
    return std::any_of(sites.begin(), sites.end(), [](const auto& site) { return !site.kind.options; });
  }
  /// Quadrature points per column, for an exact gradient by a product of rules over choices that are numbers. Chosen to give at
  /// most about ten thousand rows.
  int nodes() const {
    int product = 0;
    for (const auto& site : sites)
      if (!site.kind.options) product += site.times * (site.scope == DependenceScope::own_column ? 1 : site.columns);
    return product <= 2 ? 32 : product == 3 ? 24 : product == 4 ? 12 : 8;
  }
  int most_options() const { return most(&SiteDeclaration::options); }
  double largest_support() const {
    double largest = 0;
    for (const auto& site : sites) largest = std::max(largest, site.support_size());
    return largest;
  }
  int most_columns() const { return most(&SiteDeclaration::columns); }
  int state_width() const { return most(&SiteDeclaration::state_width); }
  /// Most rows that enumerate one question.
  double most_sets() const {
    double largest = 0;
    for (const auto& site : sites) largest = std::max(largest, site.sets(nodes()));
    return largest;
  }
  /// True if every choice changes only its own costs, so that choices can be enumerated one at a time.
  bool factorised() const {
    return choices() <= 1 || scope() == DependenceScope::own_column ||
           (scope() == DependenceScope::own_costs && most_columns() <= 1);
  }
  /// True if every question changes only its own costs, so that questions can be enumerated one at a time.
  bool steps_apart() const { return steps() <= 1 || scope() <= DependenceScope::own_costs; }
  /// True if no choice changes another choice's distribution.
  bool independent() const { return steps() <= 1 || scope() != DependenceScope::later_choices; }
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
  DependenceScope scope() const {
    auto farthest = DependenceScope::own_column;
    for (const auto& site : sites) farthest = std::max(farthest, site.scope);
    return farthest;
  }
};

}  // namespace hardgrad
