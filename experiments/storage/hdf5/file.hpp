// A thin layer over HDF5's C interface: handles that close themselves, one-line errors, one caller at a time.
//
// Only this folder and archive.cpp use HDF5. Debian's library is not thread-safe, so a File holds the process's only lock
// during its lifetime.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "experiments/storage/dataset.hpp"

namespace hardgrad::storage::hdf5 {

/// A handle of any kind; closes itself.
class Id {
 public:
  Id() = default;
  Id(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Id& operator=(Id&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Id() {
    if (id_ >= 0) close_(id_);
  }
  operator hid_t() const { return id_; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

/// A file: a new one in memory, a new one on disk, or one on disk that is read. Library bounds are V18. The creation order of
/// links is tracked, but not that of attributes: HDF5 1.10 then corrupts a group of more than 8 attributes when a user changes
/// one.
class File {
 public:
  /// A new, empty file in memory.
  File();
  /// A new file at a path, for data larger than memory. UsageError, with `name`, if it cannot be written, here or later.
  struct OnDisk {
    std::string path, name;
  };
  explicit File(const OnDisk& place);
  /// Opens the first `end` bytes of an open file, read-only; `name` is for messages. InputError if they are not HDF5, or cannot
  /// be read, here or later.
  struct Reading {
    int descriptor;
    std::size_t end;
    std::string name;
  };
  explicit File(const Reading& place);
  /// UsageError or InputError if a write or a read has failed.
  void check() const;
  /// Closes the file and returns all its bytes; every handle into it must be closed before.
  std::string image() &&;
  /// Of a new file: closes it; every handle into it must be closed before.
  void close() &&;
  const std::string& name() const { return name_; }

  /// A new group below the root.
  Id make_group(const std::string& name);
  Id open_group(const std::string& name);
  /// Names of the groups below the root, in order of creation.
  std::vector<std::string> groups();

  /// Writes axes (as dimension scales), variables and attributes. `compress`: numbers in chunks with shuffle and gzip.
  void write(hid_t group, const Dataset& data, bool compress);
  /// Reads the output of `write`; InputError for anything else. Without `values`, those of its variables are left out.
  Dataset read(hid_t group, bool values = true);
  void write_attributes(hid_t object, const Attributes& attributes);

 private:
  [[noreturn]] void fail(const std::string& what) const;
  hid_t ok(hid_t id, const std::string& what) const;
  friend class Blocks;
  /// An array without values, of the type of `like`.
  Id make_array(hid_t group, const std::string& name, const std::vector<std::size_t>& shape, const Values& like,
                const Attributes& attributes, bool compress, bool scale);
  /// Values of the places that two dataspaces select in memory and in the file.
  void put_values(hid_t set, const std::string& name, const Values& values, hid_t memory = H5S_ALL, hid_t file = H5S_ALL);
  void attach(hid_t group, hid_t set, const Dataset& data, const Variable& variable);
  std::vector<hsize_t> shape_of(hid_t set, const std::string& name);
  Values read_array(hid_t set, const std::string& name);
  Id open_array(hid_t group, const std::string& name);
  Attribute read_attribute(hid_t object, const std::string& name);
  Attributes read_attributes(hid_t object);
  /// The scale of an axis of `group`; an inherited one is in the root.
  Id open_scale(hid_t group, const Axis& axis);

  std::unique_lock<std::recursive_mutex> lock_;  // first in, last out
  std::string name_;
  bool reading_ = false;
  std::unique_ptr<int> error_;           // the system's first; outlives the file, as does the next
  std::unique_ptr<std::string> memory_;  // of a new file in memory
  Id file_;
};

// A group whose arrays along one axis are written in blocks, because they do not fit in memory.

class Blocks {
 public:
  /// Of `length` labels of the axis.
  Blocks(File& file, Id group, std::string axis, std::size_t length);
  /// Writes the next labels of the axis and the values of variables along it, whose first axis it is. The first block also has
  /// all else: attributes, the other axes and variables.
  void add(const Dataset& block);

 private:
  struct Array {
    Id set;
    std::size_t width = 1;  // values for each label
  };
  void make(const Dataset& first);

  File& file_;
  const Id group_;
  const std::string axis_;
  const std::size_t length_;
  std::size_t done_ = 0;
  std::map<std::string, Array> arrays_;
};

// A driver of HDF5 for files on disk and in memory. It remembers the first error and goes on, because HDF5 cannot close a file
// after a write has failed, and crashes at the end of the process.

/// Access by this driver to a new file on disk. `error`: receives the number of the first error of the system, and must outlive
/// the file.
Id disk_access(int& error);
/// The same to the first `end` bytes of a file that is open to be read, and stays so.
Id disk_access(int& error, int descriptor, std::size_t end);
/// The same to a new file in memory: `bytes`, which must outlive it, are its content once it is closed.
Id memory_access(int& error, std::string& bytes);

}  // namespace hardgrad::storage::hdf5
