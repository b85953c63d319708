// A clear error instead of an illegal instruction if a build for one processor runs on an older one.
//
// Compiled for any x86-64 and run before all other initialisation; HARDGRAD_NEEDS_<feature> names the features in use.
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
#ifdef HARDGRAD_NEEDS_avx
  HARDGRAD_CHECK(avx)
#endif
#ifdef HARDGRAD_NEEDS_fma
  HARDGRAD_CHECK(fma)
#endif
#ifdef HARDGRAD_NEEDS_avx2
  HARDGRAD_CHECK(avx2)
#endif
#ifdef HARDGRAD_NEEDS_bmi2
  HARDGRAD_CHECK(bmi2)
#endif
#ifdef HARDGRAD_NEEDS_avx512f
  HARDGRAD_CHECK(avx512f)
#endif
#ifdef HARDGRAD_NEEDS_avx512bw
  HARDGRAD_CHECK(avx512bw)
#endif
#ifdef HARDGRAD_NEEDS_avx512dq
  HARDGRAD_CHECK(avx512dq)
#endif
#ifdef HARDGRAD_NEEDS_avx512vl
  HARDGRAD_CHECK(avx512vl)
#endif
#ifdef HARDGRAD_NEEDS_avx512vbmi
  HARDGRAD_CHECK(avx512vbmi)
#endif
#ifdef HARDGRAD_NEEDS_avx512er
  HARDGRAD_CHECK(avx512er)
#endif
}

}  // namespace
#endif
