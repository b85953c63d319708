// hardgrad: the command line. Errors end with one line on stderr and the documented exit status.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <sstream>
#include <system_error>

#include "core/registry/plugins.hpp"
#include "core/registry/settings.hpp"
#include "core/support/error.hpp"
#include "core/support/machine.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/preflight.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/support/path_kind.hpp"

namespace {

using namespace hardgrad;

constexpr const char* welcome =
    R"(hardgrad compares gradient estimators for hard attention: bias, variance, cost, and who trains best.

A first look:
  hardgrad list                                         what there is
  hardgrad describe rloo                                one of them, in full
  hardgrad measure --task bits --exact                  bias and variance without sampling
  hardgrad run experiments/configs/quickstart.toml      a whole sweep

All verbs: hardgrad --help; one of them: hardgrad VERB --help
)";

int fail(const std::string& message, int status) {
  cli::complain(message);
  return status;
}

// The message for a command line that CLI11 rejects, with suggestions.
std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const auto subs = app.get_subcommands();
  const CLI::App& at = subs.empty() ? app : *subs.back();
  const std::string verb = subs.empty() ? "" : at.get_name() + ": ";
  std::vector<std::string> verbs, flags;
  for (const auto* sub : app.get_subcommands([](const CLI::App*) { return true; })) verbs.push_back(sub->get_name());
  for (const auto* option : at.get_options())
    for (const auto& name : option->get_lnames()) flags.push_back("--" + name);
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    const auto rest = app.remaining(true);
    const auto word = rest.empty() ? std::string() : rest.front();
    if (!word.starts_with('-') && subs.empty()) return fmt::format("unknown command \"{}\"{}", word, did_you_mean(word, verbs));
    if (word.starts_with('-'))
      return fmt::format("{}unknown option {}{}", verb, word,
                         nearest(word, flags)
                             ? did_you_mean(word, flags)
                             : fmt::format("; see hardgrad {}--help", subs.empty() ? "" : at.get_name() + " "));
    return fmt::format("{}\"{}\" is one argument too many", verb, word);
  }
  std::string text = error.what();
  if (const auto end = text.find('\n'); end != std::string::npos) text.resize(end);
  return verb + text;
}

int run_program(int argc, char** argv) {
  cli::begin_output();
  CLI::App app("hardgrad: compares gradient estimators for hard attention", "hardgrad");
  app.set_version_flag("--version", "hardgrad " HARDGRAD_VERSION ", vectors of " + instruction_set());
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  app.fallthrough();  // --plugin can be before or after the verb
  std::vector<std::string> plugins;
  cli::Verb(app).repeated("--plugin", plugins, "a shared library with estimators, models or tasks; may be repeated");
  cli::Action action;
  cli::add_list(app, action);
  cli::add_describe(app, action);
  cli::add_measure(app, action);
  cli::add_gradient(app, action);
  cli::add_evaluate(app, action);
  cli::add_plan(app, action);
  cli::add_run(app, action);
  cli::add_status(app, action);
  cli::add_watch(app, action);
  cli::add_check(app, action);
  cli::add_merge(app, action);
  cli::add_export(app, action);
  cli::add_test(app, action);
  cli::add_completion(app, action);
  cli::add_seal(app, action);
  cli::add_plugin_flags(app, action);
  app.footer(
      "Exit status: 0 success, 1 some cells failed, 2 bad usage or configuration, 3 damaged or unreadable "
      "input, 4 waiting for trials of other shards ([tune]), 130 interrupted.");
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words.front() == "help") {  // help VERB, as of other programs
    words.erase(words.begin());
    words.push_back("--help");
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  try {
    app.parse(std::move(words));
  } catch (const CLI::Success& e) {  // --help, --version
    std::ostringstream text;
    const int status = app.exit(e, text, text);
    cli::put_text(text.str());
    return cli::finish_output(status);
  } catch (const CLI::ParseError& e) {
    return fail(explain(app, e), 2);
  } catch (const Error& e) {
    return fail(e.what(), e.exit_status());
  }
  try {
    if (!action) {
      cli::put_text(welcome);
      return cli::finish_output(0);
    }
    for (const auto& plugin : plugins) {
      reject_control_characters<UsageError>(plugin);
      load_plugin(plugin);
    }
    cli::single_threaded_blas();
    return cli::finish_output(action());
  } catch (const Error& e) {
    return fail(e.what(), e.exit_status());
  } catch (const std::bad_alloc&) {
    return fail("out of memory; try a smaller batch, fewer jobs or a lower leaf cap", 2);
  } catch (const std::system_error& e) {  // not handled elsewhere: no thread, no temporary folder
    return fail(e.what(), 2);
  } catch (const std::exception& e) {
    return fail(fmt::format("this is a bug in hardgrad: {}", e.what()), 70);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return cli::leave(run_program(argc, argv));
  } catch (...) {  // reporting the error failed, too
    std::fputs("hardgrad: out of memory\n", stderr);
    return 2;
  }
}
