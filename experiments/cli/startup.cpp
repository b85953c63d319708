// Clear errors before any library starts: if a limit of the shell leaves too little memory, or if a build for one processor
// runs on an older one, instead of an illegal instruction. Compiled for any x86-64.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace {

// With too little address space OpenBLAS 0.3.29 asks for its memory for ever when it is loaded, and threads end silently or
// wait for ever. Threads and BLAS at their start, in megabytes: 582 with two cores, including a reserved heap of 64 for each.
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

#ifdef __x86_64__
// HARDGRAD_CHECKS has a HARDGRAD_CHECK(feature) for each feature in use. Run before all other initialisation.

[[maybe_unused]] void refuse(const char* feature) {
  const auto say = [](const char* text) { (void)!write(STDERR_FILENO, text, std::strlen(text)); };
  say("hardgrad: error: built for a processor with ");
  say(feature);
  say(", which this one lacks; build it on this machine, or with --preset portable\n");
  _exit(2);
}

__attribute__((constructor(101))) void check_processor() {
  __builtin_cpu_init();
#define HARDGRAD_CHECK(feature) \
  if (!__builtin_cpu_supports(#feature)) refuse(#feature);
#ifdef HARDGRAD_CHECKS
  HARDGRAD_CHECKS
#endif
}
#endif

}  // namespace
