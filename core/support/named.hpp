// Names of the values of an enumeration, in one table beside it:
// `constexpr Named<Feed> feeds[] = {{"teacher", Feed::teacher}, {"sampled", Feed::sampled}};`
#pragma once

#include <cstddef>

#include "core/support/error.hpp"

namespace hardgrad {

template <class E>
struct Named {
  const char* name;
  E value;
};

template <class E, std::size_t N>
const char* name_of(E value, const Named<E> (&names)[N]) {
  for (const auto& row : names)
    if (row.value == value) return row.name;
  throw Bug("a value of an enumeration has no name");
}

}  // namespace hardgrad
