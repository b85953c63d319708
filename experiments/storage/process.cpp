// Names of processes, from Linux's /proc.
#include "experiments/storage/process.hpp"

#include <fmt/format.h>

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "core/support/text.hpp"

namespace hardgrad::storage {
namespace {

std::string place() {
  // Containers share the machine's boot id; their process ids belong to their namespace.
  auto text = file_contents("/proc/sys/kernel/random/boot_id").value_or("");
  char link[64] = "";
  if (::readlink("/proc/self/ns/pid", link, sizeof link - 1) > 0) text += link;
  if (text.empty()) {
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    text = host;
  }
  return fmt::format("{:016x}", XXH64(text.data(), text.size(), 0));
}

/// Start of a process in ticks since boot; empty if it does not run, 0 if it runs but its start is unreadable.
std::optional<unsigned long long> start_of(long long pid) {
  char self[32] = "";  // in the /proc of another namespace, pids mean other processes
  const bool ours = ::readlink("/proc/self", self, sizeof self - 1) > 0 && self == std::to_string(::getpid());
  const auto stat = ours ? file_contents("/proc/" + std::to_string(pid) + "/stat") : std::nullopt;
  if (!stat || stat->empty()) {
    if (::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) return {};
    return 0;
  }
  std::istringstream fields(stat->substr(stat->rfind(')') + 1));  // the process name before it may contain any character
  std::string field;
  for (int i = 3; i <= 22 && fields >> field; ++i)
    if (i == 3 && (field == "Z" || field == "X")) return {};
  return std::strtoull(field.c_str(), nullptr, 10);
}

}  // namespace

const std::string& this_process() {
  thread_local std::string name;  // computed again after a fork
  thread_local pid_t of = 0;
  if (const auto pid = ::getpid(); of != pid) {
    name = place() + "-" + std::to_string(pid) + "-" + std::to_string(start_of(pid).value_or(0));
    of = pid;
  }
  return name;
}

Life life_of(const std::string& process) {
  std::string its_place;
  long long pid = 0;
  unsigned long long start = 0;
  char dash = 0;
  std::istringstream in(process);
  if (!std::getline(in, its_place, '-') || !(in >> pid >> dash >> start) || dash != '-' || pid <= 0 || its_place != place())
    return Life::elsewhere;
  const auto now = start_of(pid);
  if (!now) return Life::dead;
  return *now == 0 || start == 0 || *now == start ? Life::alive : Life::dead;
}

std::string random_name() {
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) {
    static std::atomic<unsigned> count{0};
    const auto text =
        this_process() + std::to_string(count++) + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
    bits = XXH64(text.data(), text.size(), 0);
  }
  return fmt::format("{:016x}", bits);
}

}  // namespace hardgrad::storage
