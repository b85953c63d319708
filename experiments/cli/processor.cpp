// A clear error instead of an illegal instruction if a build for one processor runs on an older one.
//
// Compiled for any x86-64 and run before all other initialisation; HARDGRAD_CHECKS has a
// HARDGRAD_CHECK(feature) for each feature in use.
#ifdef __x86_64__
#include <unistd.h>

#include <cstring>

namespace {

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

}  // namespace
#endif
