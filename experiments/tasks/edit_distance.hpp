// How many symbols must be put in, left out or replaced to make one sequence of another (Levenshtein 1966).
#pragma once

#include <cstddef>
#include <span>

namespace hardgrad::tasks {

std::size_t edit_distance(std::span<const int> from, std::span<const int> to);

}  // namespace hardgrad::tasks
