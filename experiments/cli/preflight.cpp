#include "experiments/cli/preflight.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>

#include "core/support/error.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/readable.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/support/path_kind.hpp"

extern "C" void openblas_set_num_threads(int) __attribute__((weak));

namespace hardgrad::cli {

void require_writable(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const auto refuse = [&](const std::string& why) { throw UsageError(fmt::format("{}: cannot be written: {}", path, why)); };
  if (path_kind<UsageError>(folder) == PathKind::missing) refuse(fmt::format("there is no folder {}", folder.string()));
  if (path_kind<UsageError>(path) == PathKind::folder) refuse("it is a folder");
  if (access(folder.c_str(), W_OK | X_OK) != 0) refuse(std::strerror(errno));
  storage::remove_leftovers(folder, std::filesystem::path(path).filename());
}

void note_jobs(int asked) {
  if (const int useful = useful_jobs(asked); asked > useful)
    complain(fmt::format("note: --jobs {}: using {}, more would not help on {}", asked, useful,
                         counted(static_cast<std::size_t>(useful), "core")));
}

namespace {

// Enough for threads and BLAS at their start (582 MB with two cores, including a reserved heap of 64 MB for each).
constexpr double least_bytes = 512e6, bytes_of_core = 100e6, least_stack = 1 << 20;

/// A limit of this process; infinite if there is none.
double limit_of(int resource) {
  rlimit limit{};
  const bool limited = getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? static_cast<double>(limit.rlim_cur) : std::numeric_limits<double>::infinity();
}

void require(int resource, double least, const char* what, const char* option) {
  const double limit = limit_of(resource);
  if (limit >= least) return;
  throw UsageError(
      fmt::format("{} is limited to {}, and at least {} are needed on {}: raise the limit, e.g. `ulimit -{} unlimited`", what,
                  size_text(limit), size_text(least), counted(static_cast<std::size_t>(useful_jobs(0)), "core"), option));
}

void warn_about_kernel() {
  static bool warned = false;
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  if (warned || !forced || !*forced) return;
  warned = true;
  warn("OPENBLAS_CORETYPE={} forces the BLAS kernel {}; unset it unless intended: another kernel may be faster", forced,
       storage::blas_kernel());
}

}  // namespace

void prepare_to_compute() {
  require(RLIMIT_AS, least_bytes + bytes_of_core * useful_jobs(0), "the address space", "v");
  require(RLIMIT_STACK, least_stack, "the stack of a thread", "s");
  warn_about_kernel();
}

int leave(int status) {
  if (std::isfinite(limit_of(RLIMIT_AS))) {
    std::fflush(nullptr);
    std::_Exit(status);
  }
  return status;
}

void single_threaded_blas() {
  if (openblas_set_num_threads) openblas_set_num_threads(1);
}

}  // namespace hardgrad::cli
