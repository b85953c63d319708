// Equality of archives: names, axes, values bit for bit, attributes in any order. Notes, states and paths may differ.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

#include "experiments/storage/archive.hpp"

namespace hardgrad::testing {

bool same(const storage::Axis& a, const storage::Axis& b);  // found by the lists below
bool same(const storage::Variable& a, const storage::Variable& b);
bool same(const storage::Archive::Group& a, const storage::Archive::Group& b);

template <class V>
bool same(const V& a, const V& b) {
  return a == b;
}
inline bool same(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }
inline bool same(float a, float b) { return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }
template <class V>
bool same(const std::vector<V>& a, const std::vector<V>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const V& x, const V& y) { return same(x, y); });
}
template <class... V>
bool same(const std::variant<V...>& a, const std::variant<V...>& b) {
  return a.index() == b.index() &&
         std::visit([&](const auto& x) { return same(x, std::get<std::decay_t<decltype(x)>>(b)); }, a);
}
inline bool same(storage::Attributes a, storage::Attributes b) {
  const auto by_name = [](const auto& x, const auto& y) { return x.first < y.first; };
  std::sort(a.begin(), a.end(), by_name);
  std::sort(b.begin(), b.end(), by_name);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && same(x.second, y.second); });
}
inline bool same(const storage::Axis& a, const storage::Axis& b) {
  return a.name == b.name && same(a.labels, b.labels) && same(a.attributes, b.attributes);
}
inline bool same(const storage::Variable& a, const storage::Variable& b) {
  return a.name == b.name && a.axes == b.axes && same(a.values, b.values) && same(a.attributes, b.attributes);
}
inline bool same(const storage::Dataset& a, const storage::Dataset& b) {
  return same(a.axes, b.axes) && same(a.variables, b.variables) && same(a.attributes, b.attributes);
}
inline bool same(const storage::Archive::Group& a, const storage::Archive::Group& b) {
  return a.name == b.name && same(a.data, b.data);
}
inline bool same(const storage::Archive& a, const storage::Archive& b) { return a.kind == b.kind && same(a.groups, b.groups); }

}  // namespace hardgrad::testing
