// Names of processes, from Linux's /proc; build, machine, BLAS kernel, time.
#include "experiments/storage/process.hpp"

#include <dlfcn.h>
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
#include <ctime>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "core/support/machine.hpp"
#include "core/support/text.hpp"
#include "hardgrad_build.hpp"

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

namespace {

std::atomic<int> threads_in_use{0};

// Looked up by name at run time: storage uses no linear algebra and is not linked to OpenBLAS.
std::string openblas(const char* function) {
  using Ask = char* (*)();
  if (auto ask = reinterpret_cast<Ask>(::dlsym(RTLD_DEFAULT, function)))
    if (const char* answer = ask()) return answer;
  return "none";
}

std::string cpu() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0 || line.rfind("Model", 0) == 0) {
      const auto colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  return "unknown";
}

}  // namespace

std::string blas_kernel() { return openblas("openblas_get_corename"); }

void provenance_threads(int threads) { threads_in_use = threads; }

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char buffer[32];
  std::strftime(buffer, sizeof buffer, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return buffer;
}

std::map<std::string, std::string> provenance() {
  const int threads = threads_in_use > 0 ? threads_in_use.load() : static_cast<int>(std::thread::hardware_concurrency());
  auto blas = openblas("openblas_get_config");
  while (!blas.empty() && blas.back() == ' ') blas.pop_back();
  return {
      {"git_commit", HARDGRAD_GIT_COMMIT},
      {"git_dirty", HARDGRAD_GIT_DIRTY},
      {"version", HARDGRAD_VERSION},
      {"compiler", HARDGRAD_COMPILER},
      {"flags", HARDGRAD_FLAGS},
      {"blas", blas},
      {"blas_kernel", blas_kernel()},
      {"instruction_set", instruction_set()},
      {"cpu", cpu()},
      {"threads", std::to_string(threads)},
  };
}

void add_provenance(Attributes& attributes, const std::map<std::string, std::string>& provenance) {
  attributes.emplace_back("created_at", timestamp());
  for (const auto& [key, value] : provenance) attributes.emplace_back(key, value);
}

}  // namespace hardgrad::storage
