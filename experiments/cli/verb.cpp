#include "experiments/cli/verb.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/registry/settings.hpp"

namespace hardgrad::cli {
namespace {

// CLI11's options hold no data of others.
std::map<const CLI::Option*, Candidates>& all_candidates() {
  static std::map<const CLI::Option*, Candidates> all;
  return all;
}

}  // namespace

Argument& Argument::required() { return option_->required(), *this; }
Argument& Argument::from_to(int least, int most) { return option_->check(CLI::Range(least, most)), *this; }
Argument& Argument::from_to(double least, double most) { return option_->check(CLI::Range(least, most)), *this; }
Argument& Argument::positive() { return option_->check(CLI::PositiveNumber), *this; }
Argument& Argument::not_negative() { return option_->check(CLI::NonNegativeNumber), *this; }
Argument& Argument::one_of(const std::vector<std::string>& values) {
  const auto complaint = [values](const std::string& given) {
    if (std::find(values.begin(), values.end(), given) != values.end()) return std::string();
    return fmt::format("unknown \"{}\"{}", given, did_you_mean(given, values));
  };
  option_->check(CLI::Validator(complaint, fmt::format("{{{}}}", fmt::join(values, ","))));
  return completed_by([values](const std::string&) { return values; });
}
Argument& Argument::completed_by(Candidates candidates) { return all_candidates()[option_] = std::move(candidates), *this; }
Argument& Argument::needs(const std::string& option) { return option_->needs(option), *this; }
Argument& Argument::value_may_lack(const std::string& shown) { return option_->expected(0, 1)->type_name(shown), *this; }
Argument& Argument::shows_default() { return option_->capture_default_str(), *this; }
bool Argument::given() const { return option_->count() > 0; }

std::vector<std::string> candidates_of(const CLI::Option* option, const std::string& text) {
  const auto found = all_candidates().find(option);
  return found == all_candidates().end() ? std::vector<std::string>() : found->second(text);
}

Verb::Verb(CLI::App& program, const std::string& name, const std::string& help) : app_(program.add_subcommand(name, help)) {}

template <class T>
Argument Verb::add(const std::string& name, T& into, const std::string& help) {
  return Argument(app_->add_option(name, into, help));
}
template Argument Verb::add(const std::string&, std::string&, const std::string&);
template Argument Verb::add(const std::string&, std::vector<std::string>&, const std::string&);
template Argument Verb::add(const std::string&, int&, const std::string&);
template Argument Verb::add(const std::string&, double&, const std::string&);
template Argument Verb::add(const std::string&, std::size_t&, const std::string&);
template Argument Verb::add(const std::string&, std::optional<std::uint64_t>&, const std::string&);

Argument Verb::chosen(const std::string& name, std::vector<std::string> values, const std::string& current,
                      std::function<void(std::size_t)> choose, const std::string& help) {
  const auto take = [values, choose = std::move(choose)](const std::string& given) {
    choose(static_cast<std::size_t>(std::find(values.begin(), values.end(), given) - values.begin()));
  };
  return Argument(app_->add_option_function<std::string>(name, take, help)->default_str(current)).one_of(values);
}

Argument Verb::flag(const std::string& name, bool& into, const std::string& help) {
  return Argument(app_->add_flag(name, into, help));
}
Argument Verb::repeated(const std::string& name, std::vector<std::string>& into, const std::string& help) {
  return Argument(app_->add_option(name, into, help)->allow_extra_args(false)->take_all());
}

void Verb::hide() { app_->group(""); }
void Verb::does(Action& action, Action work) {
  app_->callback([&action, work = std::move(work)] { action = work; });
}

}  // namespace hardgrad::cli
