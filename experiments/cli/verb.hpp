// One verb of `hardgrad`: its arguments and its action. CLI11 parses the command line; its header takes six seconds to compile
// and is only in the few files that need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/support/named.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hardgrad::cli {

/// Does the work, returns the exit status.
using Action = std::function<int()>;

/// Words for an argument's unfinished value; those that start with it complete it.
using Candidates = std::function<std::vector<std::string>(const std::string& text)>;

/// Constraints on one argument of a verb. Each function returns the argument itself.
class Argument {
 public:
  explicit Argument(CLI::Option* option) : option_(option) {}

  Argument& required();
  /// Numbers from `least` to `most`, both included.
  Argument& from_to(int least, int most);
  Argument& from_to(double least, double most);
  Argument& positive();
  Argument& not_negative();
  Argument& one_of(const std::vector<std::string>& values);
  /// How the shells complete its value; the values of `one_of` need none.
  Argument& completed_by(Candidates candidates);
  /// Valid only together with another option.
  Argument& needs(const std::string& option);
  /// The option's value is optional; help shows it as `shown`.
  Argument& value_may_lack(const std::string& shown);
  /// Help shows the variable's current value.
  Argument& shows_default();

  /// Whether the command line has it; valid after parsing.
  bool given() const;

 private:
  CLI::Option* option_;
};

/// The words of `completed_by` or `one_of`; none for a file, a number or another value, or a null option.
std::vector<std::string> candidates_of(const CLI::Option* option, const std::string& text);

class Verb {
 public:
  /// The program itself: its options can be before or after any verb.
  explicit Verb(CLI::App& program) : app_(&program) {}
  Verb(CLI::App& program, const std::string& name, const std::string& help);

  /// "--name": an option with a value; "name": an argument by position. T: a string, a list of them, int, double, std::size_t,
  /// std::uint64_t or an optional one. `into` must live as long as the program.
  template <class T>
  Argument add(const std::string& name, T& into, const std::string& help);
  /// An option with a value of an enumeration; help shows the names, and that of the current value.
  template <class E, std::size_t N>
  Argument add(const std::string& name, E& into, const Named<E> (&names)[N], const std::string& help) {
    std::vector<std::string> values;
    for (const auto& row : names) values.emplace_back(row.name);
    return chosen(
        name, std::move(values), name_of(into, names), [&into, &names](std::size_t i) { into = names[i].value; }, help);
  }
  /// An option without a value.
  Argument flag(const std::string& name, bool& into, const std::string& help);
  /// An option that may be given several times, one value each.
  Argument repeated(const std::string& name, std::vector<std::string>& into, const std::string& help);

  /// Omits the verb from the list.
  void hide();
  /// If the command line has this verb, stores `work` in `action`.
  void does(Action& action, Action work);

 private:
  Argument chosen(const std::string& name, std::vector<std::string> values, const std::string& current,
                  std::function<void(std::size_t)> choose, const std::string& help);
  CLI::App* app_;
};

// The verbs of `hardgrad`: each adds its subcommand, and stores its work in `action`.

void add_list(CLI::App& app, Action& action);
void add_describe(CLI::App& app, Action& action);
void add_measure(CLI::App& app, Action& action);
void add_gradient(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_status(CLI::App& app, Action& action);
void add_watch(CLI::App& app, Action& action);
void add_check(CLI::App& app, Action& action);
void add_merge(CLI::App& app, Action& action);
void add_evaluate(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_test(CLI::App& app, Action& action);
void add_seal(CLI::App& app, Action& action);
void add_plugin_flags(CLI::App& app, Action& action);
void add_completion(CLI::App& app, Action& action);

}  // namespace hardgrad::cli
