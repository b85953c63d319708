// Resource usage: processor time of the calling thread, memory of the process (Linux).
#pragma once

#include <time.h>

#include <cstddef>
#include <fstream>
#include <string>

namespace hardgrad {

/// Processor seconds of the calling thread, including its system calls. Other load on the machine is not counted.
inline double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// A field of /proc/self/status in bytes; 0 if it cannot be read.
inline std::size_t memory_field(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind(field + ":", 0) == 0) return std::stoull(line.substr(field.size() + 1)) * 1024;
  return 0;
}
/// Memory in use now.
inline std::size_t resident_bytes() { return memory_field("VmRSS"); }
/// Peak memory in use, since the start or the last `forget_peak`.
inline std::size_t peak_resident_bytes() { return memory_field("VmHWM"); }
inline void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace hardgrad
