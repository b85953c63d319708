// Seeds as text: not every reader of a file supports unsigned 64-bit numbers.
#pragma once

#include <cstdint>
#include <string>

namespace hardgrad::storage {

/// "0x00000000000000ff"
std::string hex_seed(std::uint64_t seed);
/// Decimal or 0x...; InputError otherwise.
std::uint64_t parse_seed(const std::string& text);

}  // namespace hardgrad::storage
