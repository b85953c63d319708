// HDF5 behind one lock, in memory only.
#include "experiments/storage/hdf5.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "core/support/error.hpp"

namespace hardgrad::hdf5 {
namespace {

std::recursive_mutex& mutex() {
  static std::recursive_mutex one;
  return one;
}

// The innermost complaint on HDF5's error stack, which is emptied.
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

/// Where an axis' scale stands, as seen from the group that has or inherits it.
std::string place_of(const Axis& axis) { return (axis.inherited ? "/" : "") + axis.name; }

Id string_type() {
  Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

// Type in the file and in memory.
template <class V>
hid_t file_type() {
  if constexpr (std::is_same_v<V, double>)
    return H5T_IEEE_F64LE;
  else if constexpr (std::is_same_v<V, float>)
    return H5T_IEEE_F32LE;
  else if constexpr (std::is_same_v<V, std::int64_t>)
    return H5T_STD_I64LE;
  else if constexpr (std::is_same_v<V, std::int32_t>)
    return H5T_STD_I32LE;
  else
    return H5T_STD_U8LE;
}
template <class V>
hid_t memory_type() {
  if constexpr (std::is_same_v<V, double>)
    return H5T_NATIVE_DOUBLE;
  else if constexpr (std::is_same_v<V, float>)
    return H5T_NATIVE_FLOAT;
  else if constexpr (std::is_same_v<V, std::int64_t>)
    return H5T_NATIVE_INT64;
  else if constexpr (std::is_same_v<V, std::int32_t>)
    return H5T_NATIVE_INT32;
  else
    return H5T_NATIVE_UINT8;
}

// Attributes that the dimension-scale layer, this layer or netCDF put there.
bool internal(const std::string& name) {
  static const char* names[] = {
      "CLASS",      "NAME",          "REFERENCE_LIST",      "DIMENSION_LIST", "DIMENSION_LABELS",
      "_FillValue", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties"};
  return std::any_of(std::begin(names), std::end(names), [&](const char* n) { return name == n; });
}

std::vector<hsize_t> chunk_of(std::vector<hsize_t> shape) {
  for (;;) {
    hsize_t count = 1;
    for (auto n : shape) count *= n;
    if (count <= hsize_t{1} << 16) return shape;
    auto& largest = *std::max_element(shape.begin(), shape.end());
    largest = (largest + 1) / 2;
  }
}

std::vector<const char*> pointers(const std::vector<std::string>& strings) {
  std::vector<const char*> result;
  for (const auto& s : strings) result.push_back(s.c_str());
  return result;
}

std::vector<std::string> take(std::vector<char*>& raw, hid_t type, hid_t space) {
  std::vector<std::string> result;
  for (auto* s : raw) result.emplace_back(s ? s : "");
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw.data());
  return result;
}

// HDF5 wants a name even for a file in memory, and trips over a real file that has it: this one cannot exist.
std::string unreal_name() {
  static unsigned count = 0;  // under the lock
  return "/dev/null/hardgrad-" + std::to_string(count++);
}

// Keeps the memory of a file when HDF5 closes it. (H5Fget_file_image of 1.10 clears a flag in the superblock
// and leaves its checksum wrong.) `capture` is a Block.
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

}  // namespace

void File::fail(const std::string& what) const {
  const auto words = complaint();
  if (!reading_) throw Bug("HDF5: " + what + ": " + words);
  throw InputError(name_ + ": damaged or not a file of Hardgrad: " + what +
                   (words.empty() ? "" : " (" + words + ")"));
}

hid_t File::ok(hid_t id, const std::string& what) const {
  if (id < 0) fail(what);
  return id;
}

File::File() : lock_(mutex()), name_("new"), block_(std::make_unique<Block>()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  Id create(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  const auto access = core_access(std::size_t{1} << 18);
  auto calls = keep_in(*block_);
  H5Pset_file_image_callbacks(access, &calls);
  file_ = Id(ok(H5Fcreate(unreal_name().c_str(), H5F_ACC_TRUNC, create, access), "no file"), H5Fclose);
}

File::File(const std::string& bytes, const std::string& name) : lock_(mutex()), name_(name), reading_(true) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  if (bytes.size() < 8 || std::memcmp(bytes.data(), "\211HDF\r\n\032\n", 8) != 0)
    throw InputError(name + ": is not an HDF5 file");
  const auto access = core_access(4096);
  H5Pset_file_image(access, const_cast<char*>(bytes.data()), bytes.size());
  file_ = Id(ok(H5Fopen(unreal_name().c_str(), H5F_ACC_RDONLY, access), "cannot be opened"), H5Fclose);
}

std::string File::image() && {
  if (H5Fflush(file_, H5F_SCOPE_GLOBAL) < 0) fail("cannot be flushed");
  file_ = Id();  // closing hands the memory to block_
  std::uint64_t end = 0;
  const char* bytes = block_->memory.get();
  if (bytes && block_->size >= 48) std::memcpy(&end, bytes + 28, 8);  // the superblock's end-of-file address
  if (end < 48 || end > block_->size) fail("was left open");
  return {bytes, static_cast<std::size_t>(end)};
}

Id File::make_group(const std::string& name) {
  Id create(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  return Id(ok(H5Gcreate2(file_, name.c_str(), H5P_DEFAULT, create, H5P_DEFAULT), "group " + name), H5Gclose);
}

Id File::open_group(const std::string& name) {
  return Id(ok(H5Gopen2(file_, name.empty() ? "/" : name.c_str(), H5P_DEFAULT), "no group /" + name),
            H5Gclose);
}

namespace {
std::vector<std::string> members(hid_t group, H5O_type_t wanted) {
  struct Context {
    std::vector<std::string> names;
    H5O_type_t wanted;
  } context{{}, wanted};
  H5_index_t order = H5_INDEX_CRT_ORDER;
  Id create(H5Gget_create_plist(group), H5Pclose);
  unsigned tracked = 0;
  if (H5Pget_link_creation_order(create, &tracked) < 0 || !(tracked & H5P_CRT_ORDER_TRACKED))
    order = H5_INDEX_NAME;
  const auto visit = [](hid_t g, const char* name, const H5L_info_t*, void* data) -> herr_t {
    auto& c = *static_cast<Context*>(data);
    H5O_info_t info;
    if (H5Oget_info_by_name2(g, name, &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0) return -1;
    if (info.type == c.wanted) c.names.emplace_back(name);
    return 0;
  };
  if (H5Literate(group, order, H5_ITER_INC, nullptr, visit, &context) < 0) context.names.assign(1, "");
  return context.names;
}
}  // namespace

std::vector<std::string> File::groups() {
  auto names = members(open_group(""), H5O_TYPE_GROUP);
  if (names.size() == 1 && names[0].empty()) fail("its groups cannot be listed");
  return names;
}

void File::write_attributes(hid_t object, const Attributes& attributes) {
  for (const auto& [name, attribute] : attributes) {
    const auto put = [&, &name = name](hid_t type, hid_t memory, hid_t space, const void* data) {
      Id a(ok(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), "attribute " + name),
           H5Aclose);
      if (H5Awrite(a, memory, data) < 0) fail("attribute " + name);
    };
    const Id scalar(H5Screate(H5S_SCALAR), H5Sclose);
    const auto text = string_type();
    std::visit(
        [&](const auto& value) {
          using V = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<V, std::string>) {
            const char* pointer = value.c_str();
            put(text, text, scalar, &pointer);
          } else if constexpr (std::is_arithmetic_v<V>) {
            put(file_type<V>(), memory_type<V>(), scalar, &value);
          } else {
            if (value.empty())
              return;  // no attribute is the same as an empty list: null dataspaces trouble readers
            const hsize_t count = value.size();
            const Id line(H5Screate_simple(1, &count, nullptr), H5Sclose);
            if constexpr (std::is_same_v<V, std::vector<std::string>>) {
              const auto raw = pointers(value);
              put(text, text, line, raw.data());
            } else {
              using E = typename V::value_type;
              put(file_type<E>(), memory_type<E>(), line, value.data());
            }
          }
        },
        attribute);
  }
}

void File::write_array(hid_t group, const std::string& name, const std::vector<std::size_t>& shape,
                       const Values& values, const Attributes& attributes, bool compress, bool scale) {
  const std::vector<hsize_t> extent(shape.begin(), shape.end());
  const Id space(extent.empty() ? H5Screate(H5S_SCALAR)
                                : H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
                 H5Sclose);
  const auto text = string_type();
  std::visit(
      [&](const auto& v) {
        using E = typename std::decay_t<decltype(v)>::value_type;
        const Id create(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
        hid_t type = text, memory = text;
        if constexpr (!std::is_same_v<E, std::string>) {
          type = file_type<E>();
          memory = memory_type<E>();
          if (compress && !extent.empty()) {
            H5Pset_chunk(create, static_cast<int>(extent.size()), chunk_of(extent).data());
            H5Pset_shuffle(create);
            H5Pset_deflate(create, 4);
            H5Pset_fletcher32(create);
          }
          if constexpr (std::is_floating_point_v<E>) {
            const E missing = std::numeric_limits<E>::quiet_NaN();
            H5Pset_fill_value(create, memory, &missing);
          }
        }
        H5Pset_obj_track_times(create, false);
        const Id set(ok(H5Dcreate2(group, name.c_str(), type, space, H5P_DEFAULT, create, H5P_DEFAULT), name),
                     H5Dclose);
        herr_t wrote;
        if constexpr (std::is_same_v<E, std::string>) {
          const auto raw = pointers(v);
          wrote = H5Dwrite(set, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw.data());
        } else {
          wrote = H5Dwrite(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, v.data());
        }
        if (wrote < 0) fail("values of " + name);
        if (scale) {
          if (H5DSset_scale(set, name.c_str()) < 0) fail("scale " + name);
        } else if constexpr (std::is_floating_point_v<E>) {
          const E missing = std::numeric_limits<E>::quiet_NaN();
          const Id scalar(H5Screate(H5S_SCALAR), H5Sclose);
          Id a(H5Acreate2(set, "_FillValue", type, scalar, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
          H5Awrite(a, memory, &missing);
        }
        write_attributes(set, attributes);
      },
      values);
}

void File::write(hid_t group, const Dataset& data, bool compress) {
  data.validate();
  write_attributes(group, data.attributes);
  for (const auto& axis : data.axes)
    if (!axis.inherited)
      write_array(group, axis.name, {axis.size()}, axis.labels, axis.attributes, compress, true);
  for (const auto& variable : data.variables) {
    write_array(group, variable.name, data.shape(variable), variable.values, variable.attributes, compress,
                false);
    const Id set(H5Dopen2(group, variable.name.c_str(), H5P_DEFAULT), H5Dclose);
    for (unsigned i = 0; i < variable.axes.size(); ++i) {
      const auto place = place_of(*data.axis(variable.axes[i]));
      const Id scale(ok(H5Dopen2(group, place.c_str(), H5P_DEFAULT), place), H5Dclose);
      if (H5DSattach_scale(set, scale, i) < 0) fail("axis " + variable.axes[i] + " of " + variable.name);
    }
  }
}

Values File::read_array(hid_t set, const std::string& name, std::vector<hsize_t>& shape) {
  const Id space(ok(H5Dget_space(set), name), H5Sclose);
  const Id type(ok(H5Dget_type(set), name), H5Tclose);
  const int rank = H5Sget_simple_extent_ndims(space);
  if (rank < 0 || H5Sget_simple_extent_type(space) == H5S_NULL) fail(name + " has no shape");
  shape.resize(static_cast<std::size_t>(rank));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  double wanted = 1;
  for (auto n : shape) wanted *= static_cast<double>(n);
  if (wanted > 4e9) fail(name + " claims " + std::to_string(wanted) + " values");
  const auto count = static_cast<std::size_t>(wanted);
  const auto numbers = [&]<class E>(E) -> Values {
    std::vector<E> v(count);
    if (H5Dread(set, memory_type<E>(), H5S_ALL, H5S_ALL, H5P_DEFAULT, v.data()) < 0)
      fail("values of " + name + " cannot be read");
    return v;
  };
  const auto bytes = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
      return bytes == 4 ? numbers(float{}) : numbers(double{});
    case H5T_INTEGER:
      if (bytes == 1) return numbers(std::uint8_t{});
      return bytes == 4 ? numbers(std::int32_t{}) : numbers(std::int64_t{});
    case H5T_STRING: {
      if (H5Tis_variable_str(type) <= 0) fail(name + " holds strings of fixed length");
      std::vector<char*> raw(count, nullptr);
      const auto memory = string_type();
      if (H5Dread(set, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw.data()) < 0)
        fail("strings of " + name + " cannot be read");
      return take(raw, memory, space);
    }
    default:
      fail(name + " is of a type this version does not know");
  }
}

Attributes File::read_attributes(hid_t object) {
  Attributes result;
  std::vector<std::string> names;  // all at once: opening the i-th of them sorts them anew each time
  const auto collect = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    if (!internal(name)) static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names) < 0) fail("attributes cannot be read");
  for (const auto& name : names) {
    const Id a(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose);
    if (a < 0) fail("attributes cannot be read");
    const Id type(H5Aget_type(a), H5Tclose);
    const Id space(H5Aget_space(a), H5Sclose);
    const bool scalar = H5Sget_simple_extent_type(space) == H5S_SCALAR;
    const auto points = H5Sget_simple_extent_npoints(space);
    if (points < 0 || points > 1 << 24) fail("attribute " + name + " cannot be read");
    const auto count = static_cast<std::size_t>(points);
    const auto numbers = [&]<class E>(E) {
      std::vector<E> v(count);
      if (H5Aread(a, memory_type<E>(), v.data()) < 0) fail("attribute " + name + " cannot be read");
      return v;
    };
    switch (H5Tget_class(type)) {
      case H5T_STRING: {
        if (H5Tis_variable_str(type) <= 0) fail("attribute " + name + " is a string of fixed length");
        std::vector<char*> raw(count, nullptr);
        const auto memory = string_type();
        if (H5Aread(a, memory, raw.data()) < 0) fail("attribute " + name + " cannot be read");
        auto strings = take(raw, memory, space);
        if (scalar)
          result.emplace_back(name, strings.at(0));
        else
          result.emplace_back(name, std::move(strings));
        break;
      }
      case H5T_FLOAT: {
        auto v = numbers(double{});
        if (scalar)
          result.emplace_back(name, v.at(0));
        else
          result.emplace_back(name, std::move(v));
        break;
      }
      case H5T_INTEGER:
        if (H5Tget_size(type) == 1 && !scalar) {
          result.emplace_back(name, numbers(std::uint8_t{}));
        } else {
          auto v = numbers(std::int64_t{});
          if (scalar)
            result.emplace_back(name, v.at(0));
          else
            result.emplace_back(name, std::move(v));
        }
        break;
      default:
        fail("attribute " + name + " is of a type this version does not know");
    }
  }
  H5Eclear2(H5E_DEFAULT);
  return result;
}

Dataset File::read(hid_t group) {
  Dataset data;
  data.attributes = read_attributes(group);
  const auto names = members(group, H5O_TYPE_DATASET);
  if (names.size() == 1 && names[0].empty()) fail("its datasets cannot be listed");
  try {
    for (const auto& name : names) {
      const Id set(ok(H5Dopen2(group, name.c_str(), H5P_DEFAULT), name), H5Dclose);
      std::vector<hsize_t> shape;
      auto values = read_array(set, name, shape);
      auto attributes = read_attributes(set);
      if (H5DSis_scale(set) > 0) {
        data.axes.push_back({name, std::move(values), std::move(attributes)});
        continue;
      }
      Variable variable{name, {}, std::move(values), std::move(attributes)};
      for (unsigned i = 0; i < shape.size(); ++i) {
        std::string axis;
        const auto visit = [](hid_t, unsigned, hid_t scale, void* out) -> herr_t {
          char buffer[512] = {};
          H5Iget_name(scale, buffer, sizeof buffer);
          const std::string path = buffer;
          *static_cast<std::string*>(out) = path.substr(path.rfind('/') + 1);
          return 1;
        };
        H5DSiterate_scales(set, i, nullptr, visit, &axis);
        if (axis.empty())
          fail("axis " + std::to_string(i) + " of " + name + " has no labels (no dimension scale)");
        variable.axes.push_back(axis);
        const bool own = std::find(names.begin(), names.end(), axis) != names.end();
        if (!own && !data.axis(axis)) {
          Axis inherited{axis, {}, {}, true};
          const auto place = place_of(inherited);
          const Id scale(ok(H5Dopen2(group, place.c_str(), H5P_DEFAULT), place), H5Dclose);
          std::vector<hsize_t> length;
          inherited.labels = read_array(scale, axis, length);
          inherited.attributes = read_attributes(scale);
          data.axes.push_back(std::move(inherited));
        }
      }
      data.variables.push_back(std::move(variable));
    }
    data.validate();
  } catch (const Bug& bug) {
    fail(bug.what());
  } catch (const std::bad_alloc&) {
    fail("it claims more data than this machine can hold");
  }
  return data;
}

}  // namespace hardgrad::hdf5
