#include "core/estimator/evaluations.hpp"

#include <cctype>
#include <cmath>
#include <functional>
#include <string_view>
#include <vector>

#include "core/choice/structure.hpp"
#include "core/estimator/estimator.hpp"

namespace hardgrad {
namespace {

struct NoFormula {};

/// Evaluates one expression by recursive descent.
class Expression {
 public:
  Expression(std::string_view text, std::function<double(const std::string&)> value_of)
      : rest_(text), value_of_(std::move(value_of)) {}

  double value() {
    const double all = sum();
    if (next() != 0) throw NoFormula{};
    return all;
  }

 private:
  char next() {
    while (!rest_.empty() && rest_[0] == ' ') rest_.remove_prefix(1);
    return rest_.empty() ? 0 : rest_[0];
  }
  bool takes(char c) {
    if (next() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  double sum() {
    double total = product();
    while (true)
      if (takes('+'))
        total += product();
      else if (takes('-'))
        total -= product();
      else
        return total;
  }
  double product() {
    double total = power();
    while (true)
      if (takes('*'))
        total *= power();
      else if (takes('/'))
        total /= power();
      else if (next() == '(' || std::isalnum(static_cast<unsigned char>(next())))
        total *= power();
      else
        return total;
  }
  double power() {
    const double base = factor();
    return takes('^') ? std::pow(base, power()) : base;
  }
  double factor() {
    if (takes('(')) {
      const double inner = sum();
      if (!takes(')')) throw NoFormula{};
      return inner;
    }
    next();
    std::size_t end = 0;
    while (end < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[end])) || rest_[end] == '_')) ++end;
    const std::string word(rest_.substr(0, end));
    if (word.empty()) throw NoFormula{};
    rest_.remove_prefix(end);
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) return value_of_(word);
    if (word.find_first_not_of("0123456789") != std::string::npos || word.size() > 9) throw NoFormula{};
    return std::stod(word);
  }

  std::string_view rest_;
  std::function<double(const std::string&)> value_of_;
};

/// Splits a text at the separators.
std::vector<std::string> parts(const std::string& text, const std::string& separator) {
  std::vector<std::string> found;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(separator, from)) != std::string::npos; from = at + separator.size())
    found.push_back(text.substr(from, at - from));
  found.push_back(text.substr(from));
  return found;
}

const Value& setting(const Settings& settings, const std::string& name) {
  const auto found = settings.values().find(name);
  if (found == settings.values().end()) throw NoFormula{};
  return found->second;
}

double value_of(const std::string& name, const Settings& settings, const Structure& structure) {
  if (name == "S") return structure.numbers() ? structure.nodes() : structure.largest_support();
  if (name == "T") return structure.choices();
  if (name == "Q") return structure.steps();
  if (name == "D") return structure.most_columns();
  const auto& value = setting(settings, name == "K" ? "samples" : name);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  throw NoFormula{};
}

bool holds(const std::string& condition, const Settings& settings, const Structure& structure, bool learning) {
  if (condition == "shared") return !structure.factorised();
  if (condition == "joint") return !structure.steps_apart();
  if (condition == "sequential") return !structure.independent();
  if (condition == "numbers") return structure.numbers();
  if (condition == "learning") return learning;
  const auto equals = condition.find('=');
  const auto& value = setting(settings, condition.substr(0, equals));
  if (equals != std::string::npos) return to_string(value) == condition.substr(equals + 1);
  const auto* flag = std::get_if<bool>(&value);
  if (!flag) throw NoFormula{};
  return *flag;
}

}  // namespace

std::optional<double> stated_rows(const std::string& evaluations, const Settings& settings, const Structure& structure,
                                  bool learning) {
  try {
    std::optional<double> rows;
    for (const auto& each : parts(evaluations, "; ")) {
      const auto halves = parts(each, " if ");
      if (halves.size() > 2) throw NoFormula{};
      const double value =
          Expression(halves[0], [&](const std::string& name) { return value_of(name, settings, structure); }).value();
      bool all = true;
      if (halves.size() == 2)
        for (const auto& condition : parts(halves[1], " and ")) all = holds(condition, settings, structure, learning) && all;
      if (all) rows = value;
    }
    return rows;
  } catch (const NoFormula&) {
    return std::nullopt;
  }
}

std::optional<double> stated_rows(const Spec& estimator, const Structure& structure, bool learning) {
  const auto& entry = Estimators::instance().at(estimator.name);
  return stated_rows(entry.evaluations, settings_of(entry, estimator), structure, learning);
}

}  // namespace hardgrad
