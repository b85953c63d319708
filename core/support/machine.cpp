#include "core/support/machine.hpp"

#include <time.h>

#include <fstream>
#include <xsimd/xsimd.hpp>

namespace hardgrad {
namespace {

/// A field of /proc/self/status in bytes; 0 if it cannot be read.
std::size_t memory_field(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(field + ":", 0) == 0) return std::stoull(line.substr(field.size() + 1)) * 1024;
  return 0;
}

}  // namespace

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::size_t resident_bytes() { return memory_field("VmRSS"); }
std::size_t peak_resident_bytes() { return memory_field("VmHWM"); }
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

std::string instruction_set() { return xsimd::default_arch::name(); }

}  // namespace hardgrad
