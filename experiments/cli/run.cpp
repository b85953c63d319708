// hardgrad run: runs a sweep; running it again resumes.
#include "experiments/sweeps/run.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "core/support/error.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/preflight.hpp"
#include "experiments/cli/sweep_command.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::cli {
namespace {

struct RunArguments {
  SweepOptions sweep;
  bool fail_fast = false, force = false, json = false;
};

// Seconds that running cells have to stop and be saved; some work, such as loading data, does not poll. An interactive user
// waits less than a cluster near its time limit.
double patience(int signal) { return signal == SIGTERM ? 60 : 2; }

std::atomic<int> interrupted = 0, running = 0;         // interrupted: the signal
static_assert(std::atomic<int>::is_always_lock_free);  // for use in a signal handler

extern "C" void on_signal(int signal) {
  if (!running) {  // nothing has started, so nothing can be lost
    constexpr char text[] = "\nhardgrad: interrupted before the first cell\n";
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(130);
    _exit(130);
  }
  if (interrupted) {  // a second signal kills
    ::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  interrupted = signal;
  constexpr char text[] = "\nhardgrad: stopping; running cells are saved. A second signal kills.\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) return;
}

void catch_signals() {
  struct sigaction handler {};
  handler.sa_handler = on_signal;
  handler.sa_flags = SA_RESTART;
  sigaction(SIGINT, &handler, nullptr);
  sigaction(SIGTERM, &handler, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // a closed progress stream must not end hours of work
}

void print_report(const sweeps::SweepConfig& config, const sweeps::Plan& plan, const sweeps::RunReport& report, bool json) {
  if (json) {
    print_json({{"name", plan.name},
                {"hash", plan.hash},
                {"out", config.out},
                {"cells", report.selected},
                {"already_done", report.already},
                {"ok", report.ok},
                {"skipped", report.skipped},
                {"failed", report.failures.size()},
                {"failures", report.failures},
                {"leftovers", report.stale_files},
                {"interrupted", report.interrupted},
                {"failed_trials", report.failed_trials},
                {"waiting", report.waiting},
                {"searches", report.searches}});
    return;
  }
  put("{}: {} done now, {} done before, {} skipped, {} failed{}; in {}\n", counted(report.selected, "cell"), report.ok,
      report.already, report.skipped, report.failures.size(), report.interrupted ? "; interrupted" : "", printable(config.out));
  if (report.stale_files) put("removed {} that killed processes had left half-written\n", counted(report.stale_files, "file"));
  for (const auto& line : report.tuned) put("{}\n", printable(line));
  for (const auto& failure : report.failures) put("failed: {}\n", printable(failure));
  if (report.interrupted || !report.failures.empty())
    put("the same command resumes from here\n");
  else if (report.waiting)
    put("{} of the search excluded by --shard or --only, and no process runs {}: when {} finished, the same command resumes\n",
        counted(report.waiting, "trial"), report.waiting == 1 ? "it" : "them", report.waiting == 1 ? "it is" : "they are");
  else
    put("next: hardgrad merge {} --out {}\n", shell_quoted(config.out),
        shell_quoted((std::filesystem::path(config.out).parent_path() / (config.name + ".h5")).string()));
}

int run_sweep(const RunArguments& options) {
  catch_signals();
  const auto config = options.sweep.config();
  auto run = options.sweep.run_options(config);
  run.fail_fast = options.fail_fast;
  run.force = options.force;
  run.interrupted = [] { return interrupted != 0; };
  run.patience = [] { return patience(interrupted); };
  note_jobs(run.jobs);
  warn_about_kernel();
  sweeps::TaskPool tasks;
  const auto plan = sweeps::make_plan(config, tasks, run.shard, run.shards);
  for (const auto& warning : plan.warnings) warn("{}", warning);
  running = 1;
  const auto report = sweeps::run_plan(plan, tasks, run);
  if (report.selected == 0 && !report.waiting) throw UsageError("--only or --shard leaves no cell to run");
  print_report(config, plan, report, options.json);
  if (report.abandoned) std::_Exit(finish_output(report.exit_status()));
  return report.exit_status();
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunArguments>();
  Verb verb(app, "run", "run a sweep; running again resumes");
  options->sweep.add(verb).required();
  verb.flag("--fail-fast", options->fail_fast, "stop at the first cell that fails");
  verb.flag("--force", options->force, "use a folder that holds another plan");
  verb.add("--progress", options->sweep.progress, sweeps::progress_modes, "auto, plain or none (on stderr)");
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] { return run_sweep(*options); });
}

}  // namespace hardgrad::cli
