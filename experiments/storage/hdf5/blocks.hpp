// A group whose arrays along one axis are written in blocks, because they do not fit in memory.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "experiments/storage/hdf5/file.hpp"

namespace hardgrad::storage::hdf5 {

class Blocks {
 public:
  /// Of `length` labels of the axis.
  Blocks(File& file, Id group, std::string axis, std::size_t length);
  /// Writes the next labels of the axis and the values of variables along it, whose first axis it is. The first block also has
  /// all else: attributes, the other axes and variables.
  void add(const Dataset& block);
  hid_t group() const { return group_; }
  /// File::each_block of an array along the axis, read back.
  void each(const std::string& name, const File::EachBlock& f) { file_.each_block(arrays_.at(name).set, name, f); }
  /// Number of values of an array along the axis.
  std::size_t size(const std::string& name) const { return arrays_.at(name).width * length_; }

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

}  // namespace hardgrad::storage::hdf5
