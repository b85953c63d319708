// Functions that an old C library has under other names, or lacks. old_libraries.py links them into every library, hidden.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <time.h>

#pragma GCC visibility push(hidden)

// Threads may exist: reference counts are atomic. (glibc 2.32)
char __libc_single_threaded = 0;

// glibc 2.33; before, the structure's version was an argument.
struct stat;
extern __attribute__((visibility("default"))) int __xstat(int, const char*, struct stat*);
extern __attribute__((visibility("default"))) int __lxstat(int, const char*, struct stat*);
extern __attribute__((visibility("default"))) int __fxstat(int, int, struct stat*);
extern __attribute__((visibility("default"))) int __fxstatat(int, int, const char*, struct stat*, int);
enum { structure = 1 };
int stat(const char* path, struct stat* into) { return __xstat(structure, path, into); }
int lstat(const char* path, struct stat* into) { return __lxstat(structure, path, into); }
int fstat(int file, struct stat* into) { return __fxstat(structure, file, into); }
int fstatat(int folder, const char* path, struct stat* into, int flags) {
  return __fxstatat(structure, folder, path, into, flags);
}
int stat64(const char* path, struct stat* into) __attribute__((alias("stat")));
int lstat64(const char* path, struct stat* into) __attribute__((alias("lstat")));
int fstat64(int file, struct stat* into) __attribute__((alias("fstat")));
int fstatat64(int folder, const char* path, struct stat* into, int flags) __attribute__((alias("fstatat")));

// glibc 2.30. A clock that was set meanwhile makes this wait too short or too long; the callers' loops ask their own clock again.
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  struct timespec now, real;
  if (clock_gettime(clock, &now) || clock_gettime(CLOCK_REALTIME, &real)) return EINVAL;
  const long long second = 1000000000LL;
  const long long left = (until->tv_sec - now.tv_sec) * second + until->tv_nsec - now.tv_nsec;
  const long long end = real.tv_sec * second + real.tv_nsec + left;
  const struct timespec then = {end / second, end % second};
  return pthread_cond_timedwait(condition, mutex, &then);
}

// Start code of glibc 2.34 passes no function for the constructors of an executable: the C library calls them. Here they are called as
// before. (The bounds are weak: libraries have none.)
typedef void Constructor(int, char**, char**);
extern __attribute__((weak)) Constructor *__init_array_start[], *__init_array_end[];
extern __attribute__((weak)) void _init(void);
static void construct(int count, char** arguments, char** environment) {
  _init();
  for (Constructor** one = __init_array_start; one < __init_array_end; ++one) (*one)(count, arguments, environment);
}
typedef int Main(int, char**, char**);
extern __attribute__((visibility("default"))) int system_start(Main*, int, char**, void (*)(int, char**, char**),
                                                               void (*)(void), void (*)(void), void*);
__asm__(".symver system_start, __libc_start_main@GLIBC_2.2.5");
int __libc_start_main(Main* main, int count, char** arguments, void* none, void* neither, void (*loader_end)(void),
                      void* stack) {
  (void)none, (void)neither;
  return system_start(main, count, arguments, construct, 0, loader_end, stack);
}
