// Files behind one lock: opening, errors, closing.
#include "experiments/storage/hdf5/file.hpp"

#include <cstring>

#include "core/support/error.hpp"
#include "experiments/storage/hdf5/disk.hpp"
#include "experiments/support/path_kind.hpp"

namespace hardgrad::storage::hdf5 {
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

// HDF5 needs a name even for a file in memory, and fails if a real file has it. This name cannot exist.
std::string unreal_name() {
  static unsigned count = 0;  // under the lock
  return "/dev/null/hardgrad-" + std::to_string(count++);
}

// Keeps a file's memory in a block when HDF5 closes the file. (H5Fget_file_image of 1.10 clears a flag in the superblock
// without updating its checksum.)
H5FD_file_image_callbacks_t keep_in(File::Block& block) {
  H5FD_file_image_callbacks_t calls{};
  calls.image_malloc = [](std::size_t size, H5FD_file_image_op_t, void*) { return std::malloc(size); };
  calls.image_memcpy = [](void* to, const void* from, std::size_t size, H5FD_file_image_op_t, void*) {
    return std::memcpy(to, from, size);
  };
  calls.image_realloc = [](void* p, std::size_t size, H5FD_file_image_op_t, void* data) {
    static_cast<File::Block*>(data)->size = size;
    return std::realloc(p, size);
  };
  calls.image_free = [](void* p, H5FD_file_image_op_t op, void* data) -> herr_t {
    if (op == H5FD_FILE_IMAGE_OP_FILE_CLOSE)
      static_cast<File::Block*>(data)->memory.reset(static_cast<char*>(p));
    else
      std::free(p);
    return 0;
  };
  calls.udata_copy = [](void* data) { return data; };
  calls.udata_free = [](void*) -> herr_t { return 0; };
  calls.udata = &block;
  return calls;
}

// Memory grows by `step` bytes at a time.
Id core_access(std::size_t step) {
  Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
  H5Pset_fapl_core(access, step, false);
  return access;
}

Id tracked() {
  Id create(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  return create;
}

}  // namespace

void File::fail(const std::string& what) const {
  const auto words = complaint();
  if (disk_error_) check();
  if (!reading_) throw Bug("HDF5: " + what + ": " + words);
  throw InputError(name_ + ": damaged or not a file of Hardgrad: " + what + (words.empty() ? "" : " (" + words + ")"));
}

hid_t File::ok(hid_t id, const std::string& what) const {
  if (id < 0) fail(what);
  return id;
}

File::File() : lock_(mutex()), name_("new"), block_(std::make_unique<Block>()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto create = tracked();
  const auto access = core_access(std::size_t{1} << 18);
  auto calls = keep_in(*block_);
  H5Pset_file_image_callbacks(access, &calls);
  file_ = Id(ok(H5Fcreate(unreal_name().c_str(), H5F_ACC_TRUNC, create, access), "no file"), H5Fclose);
}

File::File(const OnDisk& place) : lock_(mutex()), name_(place.name), disk_error_(std::make_unique<int>(0)) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto create = tracked(), access = disk_access(*disk_error_);
  H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V18);
  file_ = Id(ok(H5Fcreate(place.path.c_str(), H5F_ACC_TRUNC, create, access), "no file"), H5Fclose);
}

void File::check() const {
  if (*disk_error_ == 0) return;
  if (reading_) throw InputError(name_ + ": cannot be read: " + system_words(*disk_error_));
  throw UsageError(name_ + ": cannot be written: " + system_words(*disk_error_));
}

File::File(const Reading& place) : lock_(mutex()), name_(place.name), reading_(true), disk_error_(std::make_unique<int>(0)) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const auto access = disk_access(*disk_error_, place.descriptor, place.end);
  file_ = Id(ok(H5Fopen(unreal_name().c_str(), H5F_ACC_RDONLY, access), "cannot be opened"), H5Fclose);
}

void File::close() && {
  if (H5Fflush(file_, H5F_SCOPE_GLOBAL) < 0) fail("cannot be flushed");
  file_ = Id();
  check();
}

std::string File::image() && {
  if (H5Fflush(file_, H5F_SCOPE_GLOBAL) < 0) fail("cannot be flushed");
  file_ = Id();  // closing moves the memory to block_
  std::uint64_t end = 0;
  const char* bytes = block_->memory.get();
  if (bytes && block_->size >= 48) std::memcpy(&end, bytes + 28, 8);  // the superblock's end-of-file address
  if (end < 48 || end > block_->size) fail("it was not closed");
  return {bytes, static_cast<std::size_t>(end)};
}

}  // namespace hardgrad::storage::hdf5
