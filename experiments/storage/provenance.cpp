// Build, machine, BLAS kernel, time.
#include "experiments/storage/provenance.hpp"

#include <dlfcn.h>

#include <atomic>
#include <ctime>
#include <fstream>
#include <thread>

#include "core/support/machine.hpp"
#include "hardgrad_build.hpp"

namespace hardgrad::storage {
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
