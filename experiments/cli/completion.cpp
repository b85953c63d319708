// hardgrad completion: a script for the shell, made from the verbs and names there are.
#include <fmt/format.h>

#include <memory>

#include "core/estimator/estimator.hpp"
#include "core/models/model.hpp"
#include "experiments/cli/common.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::cli {
namespace {

std::string flags_of(const CLI::App& app) {
  std::string text;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) text += (text.empty() ? "--" : " --") + name;
  return text;
}

std::string joined(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, " ")); }

void bash(const CLI::App& app, const std::vector<const CLI::App*>& verbs) {
  std::string names, cases;
  for (const auto* verb : verbs) {
    names += (names.empty() ? "" : " ") + verb->get_name();
    cases += fmt::format("    {}) flags=\"{}\" ;;\n", verb->get_name(), flags_of(*verb));
  }
  const auto estimators = joined(Estimators::instance().names()), models = joined(Models::instance().names()),
             tasks = joined(Tasks::instance().names());
  fmt::print(R"(# hardgrad completion bash
_hardgrad() {{
  local cur="${{COMP_WORDS[COMP_CWORD]}}" prev="${{COMP_WORDS[COMP_CWORD-1]}}" flags="{}" words=""
  COMPREPLY=()
  case "${{COMP_WORDS[1]}}" in
{}  esac
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{} $flags"
  else
    case "$prev" in
      --estimator) words="{}" ;;
      --model) words="{}" ;;
      --task) words="{}" ;;
      --precision) words="float double" ;;
      --progress) words="auto plain none" ;;
      list) words="estimators models tasks" ;;
      describe) words="{} {} {} sweep" ;;
      completion) words="bash zsh fish" ;;
      *) case "$cur" in -*) words="$flags" ;; esac ;;
    esac
  fi
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "$cur")); fi
}}
complete -o default -F _hardgrad hardgrad
)",
             flags_of(app), cases, names, estimators, models, tasks, estimators, models, tasks);
}

void fish(const std::vector<const CLI::App*>& verbs) {
  fmt::print("# hardgrad completion fish\n");
  for (const auto* verb : verbs) {
    fmt::print("complete -c hardgrad -n __fish_use_subcommand -f -a {} -d '{}'\n", verb->get_name(),
               verb->get_description());
    for (const auto* option : verb->get_options())
      for (const auto& name : option->get_lnames()) {
        std::string values;
        if (name == "estimator") values = joined(Estimators::instance().names());
        if (name == "model") values = joined(Models::instance().names());
        if (name == "task") values = joined(Tasks::instance().names());
        if (name == "precision") values = "float double";
        fmt::print("complete -c hardgrad -n '__fish_seen_subcommand_from {}' -l {}{}\n", verb->get_name(),
                   name, values.empty() ? "" : fmt::format(" -x -a '{}'", values));
      }
  }
  fmt::print("complete -c hardgrad -n '__fish_seen_subcommand_from describe' -f -a '{} {} {} sweep'\n",
             joined(Estimators::instance().names()), joined(Models::instance().names()),
             joined(Tasks::instance().names()));
}

}  // namespace

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  auto* sub = app.add_subcommand("completion", "a completion script: eval \"$(hardgrad completion bash)\"");
  sub->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  sub->callback([shell, &app, &action] {
    action = [shell, &app] {
      const CLI::App& all = app;
      const auto verbs = all.get_subcommands([](const CLI::App*) { return true; });
      if (*shell == "fish") {
        fish(verbs);
        return 0;
      }
      if (*shell == "zsh") fmt::print("autoload -U +X bashcompinit && bashcompinit\n");
      bash(app, verbs);
      return 0;
    };
  });
}

}  // namespace hardgrad::cli
