// A clear error if a limit of the shell leaves too little memory. It is checked before any library starts: with too little
// address space OpenBLAS 0.3.29 asks for its memory for ever when it is loaded, and threads end silently or wait for ever.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>

namespace {

// Threads and BLAS at their start, in megabytes: 582 with two cores, including a reserved heap of 64 for each.
constexpr rlim_t least_memory = 512, memory_of_core = 100, least_stack = 1;
constexpr rlim_t megabyte = 1'000'000;

void require(int resource, rlim_t least, const char* what, char option, int cores) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= least * megabyte) return;
  char line[256];
  const int length =
      std::snprintf(line, sizeof line,
                    "hardgrad: %s is limited to %.3g MB, and at least %lu MB are needed on %d core%s: raise the limit, "
                    "e.g. `ulimit -%c unlimited`\n",
                    what, static_cast<double>(limit.rlim_cur) / megabyte, static_cast<unsigned long>(least), cores,
                    cores == 1 ? "" : "s", option);
  (void)!write(STDERR_FILENO, line, static_cast<std::size_t>(length));
  _exit(2);
}

void check_limits() {
  cpu_set_t set;
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  require(RLIMIT_AS, least_memory + memory_of_core * static_cast<rlim_t>(cores), "the address space", 'v', cores);
  require(RLIMIT_STACK, least_stack, "the stack of a thread", 's', cores);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)() = check_limits;

}  // namespace
