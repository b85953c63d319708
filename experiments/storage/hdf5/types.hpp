// Types of numbers and texts in a file and in memory, strings as pointers, places of values. Only for this folder.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "experiments/storage/hdf5/file.hpp"

namespace hardgrad::storage::hdf5 {

/// Every text is UTF-8 of variable length.
inline Id string_type() {
  Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

/// The type of a number V in the file and in memory.
struct NumberType {
  hid_t file, memory;
};
template <class V>
NumberType number_type() {
  if constexpr (std::is_same_v<V, double>)
    return {H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE};
  else if constexpr (std::is_same_v<V, float>)
    return {H5T_IEEE_F32LE, H5T_NATIVE_FLOAT};
  else if constexpr (std::is_same_v<V, std::int64_t>)
    return {H5T_STD_I64LE, H5T_NATIVE_INT64};
  else if constexpr (std::is_same_v<V, std::int32_t>)
    return {H5T_STD_I32LE, H5T_NATIVE_INT32};
  else
    return {H5T_STD_U8LE, H5T_NATIVE_UINT8};
}

/// The places of `count` values in memory.
inline Id line(std::size_t count) {
  const hsize_t length = count;
  return Id(H5Screate_simple(1, &length, nullptr), H5Sclose);
}

/// The places of an array's rows `from` to `from + count` in the file; a row has one label of the first axis.
inline Id rows(hid_t set, std::size_t from, std::size_t count) {
  Id space(H5Dget_space(set), H5Sclose);
  std::vector<hsize_t> extent(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space))), start(extent.size());
  H5Sget_simple_extent_dims(space, extent.data(), nullptr);
  start[0] = from;
  extent[0] = count;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr);
  return space;
}

/// Pointers to strings, for writing; the strings must outlive them.
inline std::vector<const char*> pointers(const std::vector<std::string>& strings) {
  std::vector<const char*> result;
  result.reserve(strings.size());
  for (const auto& s : strings) result.push_back(s.c_str());
  return result;
}

/// Copies strings read by HDF5 and frees its memory.
inline std::vector<std::string> take(std::vector<char*>& raw, hid_t type, hid_t space) {
  std::vector<std::string> result;
  result.reserve(raw.size());
  for (auto* s : raw) result.emplace_back(s ? s : "");
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, raw.data());
  return result;
}

}  // namespace hardgrad::storage::hdf5
