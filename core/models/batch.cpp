#include "core/models/batch.hpp"

#include <algorithm>

#include "core/support/error.hpp"

namespace hardgrad {
namespace {

template <class T>
const Array<T>& field_of(const std::map<std::string, Array<T>>& fields, const std::string& name) {
  auto it = fields.find(name);
  if (it == fields.end()) throw Bug("the batch has no field " + name);
  return it->second;
}

template <class T>
Array<T> rows_of(const Array<T>& all, const std::vector<int>& positions) {
  auto shape = all.shape();
  shape[0] = positions.size();
  Array<T> result = zeros<T>(shape);
  for (std::size_t i = 0; i < positions.size(); ++i) std::ranges::copy(row_of(all, positions[i]), row_of(result, i).begin());
  return result;
}

}  // namespace

const Array<int>& Batch::ints(const std::string& field) const { return field_of(integers, field); }
const Array<double>& Batch::numbers(const std::string& field) const { return field_of(reals, field); }

Batch Batch::select(const std::vector<int>& positions) const {
  Batch result;
  for (int p : positions) result.id.push_back(id.at(p));
  for (const auto& [name, values] : integers) result.integers[name] = rows_of(values, positions);
  for (const auto& [name, values] : reals) result.reals[name] = rows_of(values, positions);
  return result;
}

}  // namespace hardgrad
