// The verbs of `hardgrad`: each adds its subcommand, and stores its work in `action`.
#pragma once

#include "experiments/cli/verb.hpp"

namespace hardgrad::cli {

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
