// The edit distance: the least number of insertions, deletions and substitutions between two sequences (Levenshtein 1966).
#pragma once

#include <cstddef>
#include <span>

namespace hardgrad {

std::size_t edit_distance(std::span<const int> from, std::span<const int> to);

}  // namespace hardgrad
