// A layer below a program's file operations (LD_PRELOAD), for the fault tests. It counts the operations that change a file
// below FAULTS_ROOT. At the n-th, the operation fails, the process is killed or the machine loses power.
//
//   FAULTS_ROOT   the watched folder
//   FAULTS_COUNT  a file, to which the number of operations is written at the end
//   FAULTS_FAIL   n: the n-th operation fails with ENOSPC;  FAULTS_ON=1: all later ones fail, too (a full disk)
//   FAULTS_KILL   n: the process is killed before the n-th operation
//   FAULTS_LOSE   n: as FAULTS_KILL, and changes that are not durable are lost. Bytes are durable after fsync of their file, names
//                 after fsync of their folder. FAULTS_SEED=0 loses all such changes; other seeds lose some, in any order
//   FAULTS_CLOCK  seconds: the time of day jumps back and forth by this amount
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
enum { most = 20000 };  // capacity for operations and files, far above the needs of a small sweep

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static long count, fail_at = -1, kill_at = -1, lose_at = -1, fail_on;
static unsigned long long dice;

// A change of names that is not durable yet, with the data to undo it.
static struct Change {
  enum { made, moved, removed, made_folder } kind;
  char *from, *to, *kept;  // `kept`: another name of the file that was replaced
} changes[most];
static int change_count;
// A file whose last bytes are not durable yet.
static struct {
  dev_t device;
  ino_t inode;
  off_t durable;
} dirty[most];
static int dirty_count;

static long number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text && *text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void begin(void) {
  const char* given = getenv("FAULTS_ROOT");
  if (given && !realpath(given, root)) root[0] = 0;
  fail_at = number("FAULTS_FAIL", -1), kill_at = number("FAULTS_KILL", -1), lose_at = number("FAULTS_LOSE", -1);
  fail_on = number("FAULTS_ON", 0), dice = (unsigned long long)number("FAULTS_SEED", 0);
}

__attribute__((destructor)) static void end(void) {
  const char* path = getenv("FAULTS_COUNT");
  FILE* out = path ? fopen(path, "w") : NULL;
  if (out) fprintf(out, "%ld\n", count), fclose(out);
}

static int lost(void) {  // always without a seed, else at random, half of the time
  if (!dice) return 1;
  dice = dice * 6364136223846793005ULL + 1442695040888963407ULL;
  return (dice >> 40) & 1;
}

// The path with links in its folders resolved; 0 if it is not below the root.
static int below(const char* path, char* full) {
  if (!root[0] || !path) return 0;
  char folder[PATH_MAX], real[PATH_MAX];
  if (snprintf(folder, sizeof folder, "%s", path) >= (int)sizeof folder) return 0;
  char* name = strrchr(folder, '/');
  if (name) *name++ = 0;
  if (!realpath(name ? (folder[0] ? folder : "/") : ".", real)) return 0;
  if (snprintf(full, PATH_MAX, "%s/%s", real, name ? name : folder) >= PATH_MAX) return 0;
  const size_t n = strlen(root);
  return strncmp(full, root, n) == 0 && (full[n] == '/' || full[n] == 0);
}

static int watched(int fd, char* full) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = root[0] ? readlink(link, full, PATH_MAX - 1) : -1;
  if (n <= 0) return 0;
  full[n] = 0;
  return strncmp(full, root, strlen(root)) == 0;
}

// Gives a file another name, outside the root, from which it can be restored.
static char* keep(const char* path) {
  char name[PATH_MAX + 64];
  snprintf(name, sizeof name, "%s.kept.%d.%d", root, (int)getpid(), change_count);
  return REAL(link)(path, name) == 0 ? strdup(name) : NULL;
}

static void remember(int kind, const char* from, const char* to, char* kept) {
  if (lose_at < 0 || change_count == most) return;
  changes[change_count++] = (struct Change){kind, from ? strdup(from) : NULL, strdup(to), kept};
}

static void cut(const char* path) {
  struct stat s;
  if (lstat(path, &s) != 0) return;
  if (S_ISDIR(s.st_mode)) {
    DIR* folder = opendir(path);
    char inner[PATH_MAX];
    for (struct dirent* e; folder && (e = readdir(folder));)
      if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
          snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) < (int)sizeof inner)
        cut(inner);
    if (folder) closedir(folder);
    return;
  }
  for (int i = 0; i < dirty_count; ++i)
    if (dirty[i].device == s.st_dev && dirty[i].inode == s.st_ino && dirty[i].durable < s.st_size) {
      off_t left = dirty[i].durable;
      if (!lost()) left += (s.st_size - left) * (off_t)((dice >> 33) & 1023) / 1024;
      if (truncate(path, left) != 0) abort();
      // The file's length was durable, but not its bytes.
      if (dice && ((dice >> 50) & 1) && truncate(path, s.st_size) != 0) abort();
    }
}

static void lose_power(void) {
  while (change_count > 0) {
    const struct Change c = changes[--change_count];
    if (!lost()) continue;
    if (c.kind == made) REAL(unlink)(c.to);
    if (c.kind == made_folder) rmdir(c.to);
    if (c.kind == moved && access(c.to, F_OK) == 0) REAL(rename)(c.to, c.from);
    if (c.kind == moved && c.kept) REAL(rename)(c.kept, c.to);
    if (c.kind == removed && c.kept && access(c.to, F_OK) != 0) REAL(rename)(c.kept, c.to);
  }
  cut(root);
}

// Called before each operation, with the lock held. Nonzero: the operation must fail.
static int due(void) {
  ++count;
  if (count == lose_at) lose_power();
  if (count == lose_at || count == kill_at) kill(getpid(), SIGKILL), pause();
  if (count == fail_at || (fail_on && fail_at > 0 && count > fail_at)) {
    errno = ENOSPC;
    return 1;
  }
  return 0;
}

static void bytes_change(int fd) {
  struct stat s;
  if (lose_at < 0 || fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) return;
  for (int i = 0; i < dirty_count; ++i)
    if (dirty[i].device == s.st_dev && dirty[i].inode == s.st_ino) return;
  if (dirty_count < most) {
    dirty[dirty_count].device = s.st_dev;
    dirty[dirty_count].inode = s.st_ino;
    dirty[dirty_count++].durable = s.st_size;
  }
}

static void is_durable(int fd, const char* path) {
  struct stat s;
  if (fstat(fd, &s) != 0) return;
  if (!S_ISDIR(s.st_mode)) {
    for (int i = 0; i < dirty_count; ++i)
      if (dirty[i].device == s.st_dev && dirty[i].inode == s.st_ino) dirty[i--] = dirty[--dirty_count];
    return;
  }
  int left = 0;
  for (int i = 0; i < change_count; ++i) {
    const char* name = strrchr(changes[i].to, '/');
    const size_t n = (size_t)(name - changes[i].to);
    if (strlen(path) == n && strncmp(path, changes[i].to, n) == 0)
      (void)(changes[i].kept && REAL(unlink)(changes[i].kept));
    else
      changes[left++] = changes[i];
  }
  change_count = left;
}

static int opened(int at, const char* path, int flags, mode_t mode) {
  char full[PATH_MAX];
  const int writes = (flags & O_ACCMODE) != O_RDONLY;
  if (!writes || !(at == AT_FDCWD || (path && path[0] == '/')) || !below(path, full))
    return (int)syscall(SYS_openat, at, path, flags, mode);
  pthread_mutex_lock(&lock);
  const int creates = (flags & O_CREAT) && access(full, F_OK) != 0;
  int fd = -1;
  if (!(creates && due())) fd = (int)syscall(SYS_openat, at, path, flags, mode);
  if (fd >= 0 && creates) remember(made, NULL, full, NULL);
  if (fd >= 0 && (flags & O_TRUNC)) bytes_change(fd);
  pthread_mutex_unlock(&lock);
  return fd;
}

#define MODE(flags)                        \
  mode_t mode = 0;                         \
  if ((flags) & (O_CREAT | O_TMPFILE)) {   \
    va_list more;                          \
    va_start(more, flags);                 \
    mode = (mode_t)va_arg(more, unsigned); \
    va_end(more);                          \
  }
int open(const char* path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char* path, int flags, ...) { MODE(flags) return opened(AT_FDCWD, path, flags | O_LARGEFILE, mode); }
int openat(int at, const char* path, int flags, ...) { MODE(flags) return opened(at, path, flags, mode); }
int openat64(int at, const char* path, int flags, ...) { MODE(flags) return opened(at, path, flags | O_LARGEFILE, mode); }

ssize_t write(int fd, const void* bytes, size_t n) {
  char full[PATH_MAX];
  if (!watched(fd, full)) return syscall(SYS_write, fd, bytes, n);
  pthread_mutex_lock(&lock);
  ssize_t put = -1;
  if (!due()) {
    bytes_change(fd);
    put = syscall(SYS_write, fd, bytes, n);
  }
  pthread_mutex_unlock(&lock);
  return put;
}

int fsync(int fd) {
  char full[PATH_MAX];
  if (!watched(fd, full)) return (int)syscall(SYS_fsync, fd);
  pthread_mutex_lock(&lock);
  const int done = due() ? -1 : 0;  // no real fsync: this layer defines which changes are durable
  if (done == 0) is_durable(fd, full);
  pthread_mutex_unlock(&lock);
  return done;
}

int rename(const char* from, const char* to) {
  char a[PATH_MAX], b[PATH_MAX];
  if (!below(from, a) || !below(to, b)) return REAL(rename)(from, to);
  pthread_mutex_lock(&lock);
  int done = -1;
  if (!due()) {
    char* kept = lose_at >= 0 && access(b, F_OK) == 0 ? keep(b) : NULL;
    done = REAL(rename)(from, to);
    if (done == 0) remember(moved, a, b, kept);
  }
  pthread_mutex_unlock(&lock);
  return done;
}

int link(const char* from, const char* to) {
  char full[PATH_MAX];
  if (!below(to, full)) return REAL(link)(from, to);
  pthread_mutex_lock(&lock);
  const int done = due() ? -1 : REAL(link)(from, to);
  if (done == 0) remember(made, NULL, full, NULL);
  pthread_mutex_unlock(&lock);
  return done;
}

int unlink(const char* path) {
  char full[PATH_MAX];
  if (!below(path, full)) return REAL(unlink)(path);
  pthread_mutex_lock(&lock);
  if (count + 1 != fail_at)
    due();  // a full disk still deletes files
  else
    ++count;
  char* kept = lose_at >= 0 ? keep(full) : NULL;
  const int done = REAL(unlink)(path);
  if (done == 0) remember(removed, NULL, full, kept);
  pthread_mutex_unlock(&lock);
  return done;
}

int mkdir(const char* path, mode_t mode) {
  char full[PATH_MAX];
  if (!below(path, full)) return REAL(mkdir)(path, mode);
  pthread_mutex_lock(&lock);
  const int done = due() ? -1 : REAL(mkdir)(path, mode);
  if (done == 0) remember(made_folder, NULL, full, NULL);
  pthread_mutex_unlock(&lock);
  return done;
}

// Simulates a clock that is set back and forth: every seventh query jumps.
static long jump(void) {
  static long asked;
  const long by = number("FAULTS_CLOCK", 0);
  return by ? (__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) / 7 % 3 - 1) * by : 0;
}
int clock_gettime(clockid_t clock, struct timespec* now) {
  const int done = (int)syscall(SYS_clock_gettime, clock, now);
  if (done == 0 && clock == CLOCK_REALTIME) now->tv_sec += jump();
  return done;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  (void)zone;
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}
