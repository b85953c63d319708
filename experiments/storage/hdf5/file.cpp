// Files behind one lock: opening, errors, closing.
#include "experiments/storage/hdf5/file.hpp"

#include "core/support/error.hpp"
#include "experiments/storage/hdf5/driver.hpp"
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
