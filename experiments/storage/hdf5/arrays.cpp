// Writing and reading one dataset's values.
#include <hdf5_hl.h>

#include <algorithm>
#include <limits>

#include "experiments/storage/hdf5/file.hpp"
#include "experiments/storage/hdf5/types.hpp"

namespace hardgrad::storage::hdf5 {
namespace {

std::size_t product(const std::vector<hsize_t>& shape) {
  std::size_t count = 1;
  for (auto n : shape) count *= n;
  return count;
}

/// The shape halved along its largest extents until it holds at most 2^16 values.
std::vector<hsize_t> chunk_of(std::vector<hsize_t> shape) {
  for (;;) {
    if (product(shape) <= std::size_t{1} << 16) return shape;
    auto& largest = *std::max_element(shape.begin(), shape.end());
    largest = (largest + 1) / 2;
  }
}

/// Conversion settings for `count` texts. By default HDF5 clears a megabyte for any number of them.
Id converting(std::size_t count) {
  Id transfer(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
  H5Pset_buffer(transfer, std::clamp<std::size_t>(count, 1, 1 << 16) * sizeof(hvl_t), nullptr, nullptr);
  return transfer;
}

}  // namespace

Id File::make_array(hid_t group, const std::string& name, const std::vector<std::size_t>& shape, const Values& like,
                    const Attributes& attributes, bool compress, bool scale) {
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  const Id space(
      extent.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
      H5Sclose);
  const auto text = string_type();
  return std::visit(
      [&](const auto& v) {
        using E = typename std::decay_t<decltype(v)>::value_type;
        const Id create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
        hid_t type = text;
        if constexpr (!std::is_same_v<E, std::string>) {
          type = number_type<E>().file;
          if (compress && !extent.empty()) {
            const auto chunk = chunk_of(extent);
            H5Pset_chunk(create, static_cast<int>(extent.size()), chunk.data());
            H5Pset_shuffle(create);
            H5Pset_deflate(create, 4);
            // Room for all chunks along the first rows, so that each is compressed once when rows are written in blocks.
            auto band = chunk[0] * sizeof(E);
            for (std::size_t i = 1; i < extent.size(); ++i) band *= (extent[i] + chunk[i] - 1) / chunk[i] * chunk[i];
            H5Pset_chunk_cache(access, 10007, std::max<std::size_t>(band + band / 4, 1 << 20), 1);
          }
          if constexpr (std::is_floating_point_v<E>) {
            const E missing = std::numeric_limits<E>::quiet_NaN();
            H5Pset_fill_value(create, number_type<E>().memory, &missing);
          }
        }
        H5Pset_obj_track_times(create, false);
        Id set(ok(H5Dcreate2(group, name.c_str(), type, space, H5P_DEFAULT, create, access), name), H5Dclose);
        if (scale) {
          if (H5DSset_scale(set, name.c_str()) < 0) fail("scale " + name);
        } else if constexpr (std::is_floating_point_v<E>) {
          const E missing = std::numeric_limits<E>::quiet_NaN();
          const Id scalar(H5Screate(H5S_SCALAR), H5Sclose);
          Id a(H5Acreate2(set, "_FillValue", type, scalar, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
          H5Awrite(a, number_type<E>().memory, &missing);
        }
        write_attributes(set, attributes);
        return set;
      },
      like);
}

void File::put_values(hid_t set, const std::string& name, const Values& values, hid_t memory, hid_t file) {
  const auto wrote = std::visit(
      [&](const auto& v) {
        using E = typename std::decay_t<decltype(v)>::value_type;
        if constexpr (std::is_same_v<E, std::string>) {
          const auto raw = pointers(v);
          return H5Dwrite(set, string_type(), memory, file, converting(raw.size()), raw.data());
        } else {
          return H5Dwrite(set, number_type<E>().memory, memory, file, H5P_DEFAULT, v.data());
        }
      },
      values);
  if (wrote < 0) fail("values of " + name);
}

std::vector<hsize_t> File::shape_of(hid_t set, const std::string& name) {
  const Id space(ok(H5Dget_space(set), name), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) fail(name + " has no shape");
  std::vector<hsize_t> shape(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  double wanted = 1;
  for (auto n : shape) wanted *= static_cast<double>(n);
  if (wanted > 4e9) fail(name + " claims " + std::to_string(wanted) + " values");
  return shape;
}

Values File::read_array(hid_t set, const std::string& name) {
  const auto count = product(shape_of(set, name));
  const auto numbers = [&]<class E>(E) -> Values {
    std::vector<E> v(count);
    if (H5Dread(set, number_type<E>().memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, v.data()) < 0)
      fail("values of " + name + " cannot be read");
    return v;
  };
  const Id type(ok(H5Dget_type(set), name), H5Tclose);
  const auto bytes = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT: return bytes == 4 ? numbers(float{}) : numbers(double{});
    case H5T_INTEGER:
      if (bytes == 1) return numbers(std::uint8_t{});
      return bytes == 4 ? numbers(std::int32_t{}) : numbers(std::int64_t{});
    case H5T_STRING: {
      if (H5Tis_variable_str(type) <= 0) fail(name + " holds strings of fixed length");
      std::vector<char*> raw(count, nullptr);
      const auto text = string_type();
      if (H5Dread(set, text, H5S_ALL, H5S_ALL, converting(count), raw.data()) < 0)
        fail("strings of " + name + " cannot be read");
      return take(raw, text, line(count));
    }
    default: fail(name + " has a type that this version does not support");
  }
}

Blocks::Blocks(File& file, Id group, std::string axis, std::size_t length)
    : file_(file), group_(std::move(group)), axis_(std::move(axis)), length_(length) {}

void Blocks::make(const Dataset& first) {
  const auto array = [&](const std::string& name, std::vector<std::size_t> shape, const Values& like, const auto& attributes,
                         bool scale) {
    shape[0] = length_;
    Array made{file_.make_array(group_, name, shape, like, attributes, true, scale)};
    for (std::size_t i = 1; i < shape.size(); ++i) made.width *= shape[i];
    arrays_.emplace(name, std::move(made));
  };
  file_.write_attributes(group_, first.attributes);
  for (const auto& axis : first.axes)
    if (axis.name == axis_)
      array(axis.name, {length_}, axis.labels, axis.attributes, true);
    else
      file_.put_values(file_.make_array(group_, axis.name, {axis.size()}, axis.labels, axis.attributes, true, true), axis.name,
                       axis.labels);
  for (const auto& variable : first.variables) {
    const bool along = !variable.axes.empty() && variable.axes[0] == axis_;
    if (along) {
      array(variable.name, first.shape(variable), variable.values, variable.attributes, false);
      file_.attach(group_, arrays_.at(variable.name).set, first, variable);
    } else {
      const auto set =
          file_.make_array(group_, variable.name, first.shape(variable), variable.values, variable.attributes, true, false);
      file_.put_values(set, variable.name, variable.values);
      file_.attach(group_, set, first, variable);
    }
  }
}

void Blocks::add(const Dataset& block) {
  block.validate();
  if (done_ == 0) make(block);
  const auto count = block.axis(axis_)->size();
  const auto put = [&](const std::string& name, const Values& values) {
    const auto it = arrays_.find(name);
    if (it == arrays_.end()) return;
    const auto& [set, width] = it->second;
    file_.put_values(set, name, values, line(count * width), rows(set, done_, count));
  };
  put(axis_, block.axis(axis_)->labels);
  for (const auto& variable : block.variables) put(variable.name, variable.values);
  file_.check();
  done_ += count;
}

}  // namespace hardgrad::storage::hdf5
