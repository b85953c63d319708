#include "experiments/cli/preflight.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/support/error.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/process.hpp"
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
  storage::remove_stale_files(folder, std::filesystem::path(path).filename());
}

void note_jobs(int asked) {
  if (const int useful = useful_jobs(asked); asked > useful)
    complain(fmt::format("note: --jobs {}: using {}, more would not help on {}", asked, useful,
                         counted(static_cast<std::size_t>(useful), "core")));
}

void warn_about_kernel() {
  static bool warned = false;
  const char* forced = std::getenv("OPENBLAS_CORETYPE");
  if (warned || !forced || !*forced) return;
  warned = true;
  warn("OPENBLAS_CORETYPE={} forces the BLAS kernel {}; unset it unless intended: another kernel may be faster", forced,
       storage::blas_kernel());
}

int leave(int status) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    std::fflush(nullptr);
    std::_Exit(status);
  }
  return status;
}

void single_threaded_blas() {
  if (openblas_set_num_threads) openblas_set_num_threads(1);
}

}  // namespace hardgrad::cli
