// The cost of an estimate as stated by its entry (EstimatorEntry::evaluations): a formula that pages show and programs
// evaluate.
//
//   evaluations = case { "; " case }                     the last case whose conditions hold counts
//   case        = expression [ " if " condition { " and " condition } ]
//
// An expression is made of + - * / ^, parentheses and numbers, and of
//   K  the setting `samples`              S  the most options of a choice (nodes of a quadrature, of numbers)
//   T  choices of an example, all columns  Q  questions of an example       D  most columns of a question
// and of the names of numeric settings. Adjacent factors are multiplied. A condition is
//   shared      choices share a cost           joint     so do choices of different questions
//   sequential  choices feed later ones        numbers   choices are numbers
//   learning    the estimator's own parameters are being trained
// or a setting: a flag's name, or `name=value`.
#pragma once

#include <optional>
#include <string>

#include "core/registry/settings.hpp"

namespace hardgrad {

struct Structure;

/// Rows of the network that one estimate takes at most, per question and example. Empty if the text is not a formula: a plugin
/// may state its cost in words.
std::optional<double> stated_rows(const std::string& evaluations, const Settings& settings, const Structure& structure,
                                  bool learning = false);
/// The same of the estimator that the spec names.
std::optional<double> stated_rows(const Spec& estimator, const Structure& structure, bool learning = false);

}  // namespace hardgrad
