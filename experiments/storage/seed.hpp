// Seeds as text: 64 bits, which no number of a file holds for every reader.
#pragma once

#include <cstdint>
#include <string>

namespace hardgrad::storage {

/// "0x00000000000000ff"
std::string hex_seed(std::uint64_t seed);
/// Decimal or 0x...; InputError otherwise.
std::uint64_t parse_seed(const std::string& text);

}  // namespace hardgrad::storage
