// Files behind one lock: a driver for disk and memory; opening, errors, closing.
#include "experiments/storage/hdf5/file.hpp"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>
#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>
#endif

#include "core/support/error.hpp"
#include "experiments/support/path_kind.hpp"

namespace hardgrad::storage::hdf5 {
namespace {

struct Access {
  int* error;
  int descriptor = -1;  // of a file to be read
  haddr_t end = 0;
  std::string* memory = nullptr;  // of a file in memory
};

struct Opened {
  H5FD_t head;  // HDF5's, first
  int fd;       // negative: in memory
  std::string* memory;
  haddr_t end, written;  // of the addresses in use; of the file
  int* error;
};
Opened& opened(H5FD_t* file) { return *reinterpret_cast<Opened*>(file); }
const Opened& opened(const H5FD_t* file) { return *reinterpret_cast<const Opened*>(file); }

void note(Opened& file, bool good) {
  if (!good && *file.error == 0) *file.error = errno ? errno : EIO;
}

// move(bytes done, bytes left): the number of bytes moved, as pread and pwrite.
template <class F>
std::size_t moved(std::size_t size, F move) {
  std::size_t done = 0;
  while (done < size) {
    errno = 0;
    const auto n = move(done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

// Gives the file `end` bytes.
void resize(Opened& file, haddr_t end) {
  if (!file.memory) return note(file, ::ftruncate(file.fd, static_cast<off_t>(end)) == 0);
  try {
    file.memory->resize(end);
  } catch (const std::bad_alloc&) {
    errno = ENOMEM;
    note(file, false);
  }
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"  // functions that HDF5 does without
const H5FD_class_t driver = {
#ifdef H5FD_CLASS_VERSION  // since HDF5 1.14
    .version = H5FD_CLASS_VERSION,
    .value = 500,  // of those that HDF5 leaves to private drivers
#endif
    .name = "hardgrad",
    .maxaddr = static_cast<haddr_t>(std::numeric_limits<off_t>::max()),
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(Access),
    .open = [](const char* name, unsigned, hid_t access, haddr_t) -> H5FD_t* {
      const auto& info = *static_cast<const Access*>(H5Pget_driver_info(access));
      if (info.memory) return &(new Opened{{}, -1, info.memory, 0, 0, info.error})->head;
      const int fd = info.descriptor >= 0 ? ::fcntl(info.descriptor, F_DUPFD_CLOEXEC, 0)
                                          : ::open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
      if (fd < 0) {
        *info.error = errno;
        return nullptr;
      }
      return &(new Opened{{}, fd, nullptr, 0, info.end, info.error})->head;
    },
    .close = [](H5FD_t* file) -> herr_t {
      if (!opened(file).memory) note(opened(file), ::close(opened(file).fd) == 0);
      delete &opened(file);
      return 0;
    },
    .cmp = [](const H5FD_t* a, const H5FD_t* b) { return a < b   ? -1
                                                         : a > b ? 1
                                                                 : 0; },
    .query = [](const H5FD_t*, unsigned long* flags) -> herr_t {
      *flags =
          H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE | H5FD_FEAT_AGGREGATE_SMALLDATA;
      return 0;
    },
    .get_eoa = [](const H5FD_t* file, H5FD_mem_t) { return opened(file).end; },
    .set_eoa = [](H5FD_t* file, H5FD_mem_t, haddr_t end) -> herr_t {
      opened(file).end = end;
      return 0;
    },
    .get_eof = [](const H5FD_t* file, H5FD_mem_t) { return opened(file).written; },
    .read = [](H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t size, void* buffer) -> herr_t {
      auto* to = static_cast<char*>(buffer);
      if (const auto* memory = opened(file).memory) {
        const auto there = at < memory->size() ? memory->copy(to, size, at) : 0;
        std::memset(to + there, 0, size - there);
        return 0;
      }
      const auto done = moved(size, [&](std::size_t from, std::size_t left) {
        return ::pread(opened(file).fd, to + from, left, static_cast<off_t>(at + from));
      });
      note(opened(file), done == size || errno == 0);  // beyond the end there are zeros
      std::memset(to + done, 0, size - done);
      return 0;
    },
    .write = [](H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, std::size_t size, const void* buffer) -> herr_t {
      const auto* from = static_cast<const char*>(buffer);
      if (auto* memory = opened(file).memory) {
        if (at + size > memory->size()) resize(opened(file), at + size);
        if (at + size <= memory->size()) std::memcpy(memory->data() + at, from, size);
        opened(file).written = std::max<haddr_t>(opened(file).written, at + size);
        return 0;
      }
      const auto done = moved(size, [&](std::size_t first, std::size_t left) {
        return ::pwrite(opened(file).fd, from + first, left, static_cast<off_t>(at + first));
      });
      note(opened(file), done == size);
      opened(file).written = std::max<haddr_t>(opened(file).written, at + size);
      return 0;
    },
    .truncate = [](H5FD_t* file, hid_t, hbool_t) -> herr_t {
      if (opened(file).written != opened(file).end) resize(opened(file), opened(file).end);
      opened(file).written = opened(file).end;
      return 0;
    },
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};
#pragma GCC diagnostic pop

Id access_of(const Access& info) {
  static const hid_t id = H5FDregister(&driver);
  Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_driver(access, id, &info);
  return access;
}

}  // namespace

Id disk_access(int& error) { return access_of({.error = &error}); }
Id disk_access(int& error, int descriptor, std::size_t end) { return access_of({&error, descriptor, end}); }
Id memory_access(int& error, std::string& bytes) { return access_of({.error = &error, .memory = &bytes}); }

namespace {

std::recursive_mutex& mutex() {
  static std::recursive_mutex one;
  return one;
}

// The innermost message on HDF5's error stack; clears the stack.
std::string complaint() {
  std::string words;
  H5Ewalk2(
      H5E_DEFAULT, H5E_WALK_UPWARD,
      [](unsigned depth, const H5E_error2_t* error, void* out) -> herr_t {
        if (depth == 0 && error->desc) *static_cast<std::string*>(out) = error->desc;
        return 0;
      },
      &words);
  H5Eclear2(H5E_DEFAULT);
  return words;
}

// HDF5 needs a name even for bytes that have none. This one cannot exist.
std::string unreal_name() {
  static unsigned count = 0;  // under the lock
  return "/dev/null/hardgrad-" + std::to_string(count++);
}

Id tracked() {
  Id create(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  return create;
}

}  // namespace

void File::fail(const std::string& what) const {
  const auto words = complaint();
  check();
  if (!reading_) throw Bug("HDF5: " + what + ": " + words);
  throw InputError(name_ + ": damaged or not a file of Hardgrad: " + what + (words.empty() ? "" : " (" + words + ")"));
}

hid_t File::ok(hid_t id, const std::string& what) const {
  if (id < 0) fail(what);
  return id;
}

File::File() : lock_(mutex()), name_("new"), error_(std::make_unique<int>(0)), memory_(std::make_unique<std::string>()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto create = tracked(), access = memory_access(*error_, *memory_);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
  file_ = Id(ok(H5Fcreate(unreal_name().c_str(), H5F_ACC_TRUNC, create, access), "no file"), H5Fclose);
}

File::File(const OnDisk& place) : lock_(mutex()), name_(place.name), error_(std::make_unique<int>(0)) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto create = tracked(), access = disk_access(*error_);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
  file_ = Id(ok(H5Fcreate(place.path.c_str(), H5F_ACC_TRUNC, create, access), "no file"), H5Fclose);
}

void File::check() const {
  if (*error_ == 0) return;
  if (reading_) throw InputError(name_ + ": cannot be read: " + system_words(*error_));
  throw UsageError(name_ + ": cannot be written: " + system_words(*error_));
}

File::File(const Reading& place) : lock_(mutex()), name_(place.name), reading_(true), error_(std::make_unique<int>(0)) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto access = disk_access(*error_, place.descriptor, place.end);
  file_ = Id(ok(H5Fopen(unreal_name().c_str(), H5F_ACC_RDONLY, access), "cannot be opened"), H5Fclose);
}

void File::close() && {
  if (H5Fflush(file_, H5F_SCOPE_GLOBAL) < 0) fail("cannot be flushed");
  file_ = Id();
  check();
}

std::string File::image() && {
  std::move(*this).close();
  return std::move(*memory_);
}

}  // namespace hardgrad::storage::hdf5
