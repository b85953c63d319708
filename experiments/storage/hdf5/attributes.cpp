// Writing and reading attributes of a group or a dataset.
#include <algorithm>

#include "experiments/storage/hdf5/file.hpp"
#include "experiments/storage/hdf5/types.hpp"

namespace hardgrad::storage::hdf5 {
namespace {

// Attributes of the dimension-scale layer, this layer or netCDF.
bool internal(const std::string& name) {
  static const char* names[] = {"CLASS",      "NAME",          "REFERENCE_LIST",      "DIMENSION_LIST", "DIMENSION_LABELS",
                                "_FillValue", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_NCProperties"};
  return std::any_of(std::begin(names), std::end(names), [&](const char* n) { return name == n; });
}

/// One value if the attribute is scalar, else the list.
template <class V>
Attribute one_or_all(std::vector<V> values, bool scalar) {
  if (scalar) return std::move(values.at(0));
  return values;
}

}  // namespace

void File::write_attributes(hid_t object, const Attributes& attributes) {
  for (const auto& [name, attribute] : attributes) {
    const auto put = [&, &name = name](hid_t type, hid_t memory, hid_t space, const void* data) {
      Id a(ok(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT), "attribute " + name), H5Aclose);
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
            put(number_type<V>().file, number_type<V>().memory, scalar, &value);
          } else {
            if (value.empty()) return;  // an empty list is a missing attribute: some readers fail on null dataspaces
            const hsize_t count = value.size();
            const Id line(H5Screate_simple(1, &count, nullptr), H5Sclose);
            if constexpr (std::is_same_v<V, std::vector<std::string>>) {
              const auto raw = pointers(value);
              put(text, text, line, raw.data());
            } else {
              using E = typename V::value_type;
              put(number_type<E>().file, number_type<E>().memory, line, value.data());
            }
          }
        },
        attribute);
  }
}

Attribute File::read_attribute(hid_t object, const std::string& name) {
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
    if (H5Aread(a, number_type<E>().memory, v.data()) < 0) fail("attribute " + name + " cannot be read");
    return v;
  };
  switch (H5Tget_class(type)) {
    case H5T_STRING: {
      if (H5Tis_variable_str(type) <= 0) fail("attribute " + name + " is a string of fixed length");
      std::vector<char*> raw(count, nullptr);
      const auto memory = string_type();
      if (H5Aread(a, memory, raw.data()) < 0) fail("attribute " + name + " cannot be read");
      return one_or_all(take(raw, memory, space), scalar);
    }
    case H5T_FLOAT: return one_or_all(numbers(double{}), scalar);
    case H5T_INTEGER:
      if (H5Tget_size(type) == 1 && !scalar) return numbers(std::uint8_t{});
      return one_or_all(numbers(std::int64_t{}), scalar);
    default: fail("attribute " + name + " has a type that this version does not support");
  }
}

Attributes File::read_attributes(hid_t object) {
  std::vector<std::string> names;  // all at once: opening the i-th attribute sorts all of them each time
  const auto collect = [](hid_t, const char* name, const H5A_info_t*, void* out) -> herr_t {
    if (!internal(name)) static_cast<std::vector<std::string>*>(out)->emplace_back(name);
    return 0;
  };
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names) < 0) fail("attributes cannot be read");
  Attributes result;
  for (const auto& name : names) result.emplace_back(name, read_attribute(object, name));
  H5Eclear2(H5E_DEFAULT);
  return result;
}

}  // namespace hardgrad::storage::hdf5
