// A cell's record as a short string: its members by name, as CBOR (RFC 8949) with typed arrays (RFC 8746), compressed by zlib.
#pragma once

#include <string>
#include <string_view>

#include "experiments/storage/cell.hpp"

namespace hardgrad::storage {

/// Lists of numbers are little-endian typed arrays. Points are in the order of their steps; of several at one step, the last is
/// kept. Mean gradients of more than 1,000 parameters are omitted.
std::string packed(CellRecord record);
/// InputError if the bytes are not of this form. A number of a measurement or of training that they lack has its default.
CellRecord unpacked(std::string_view bytes);
/// InputError if the bytes are not compressed CBOR of whole items: a fraction of the time of `unpacked`.
void require_items(std::string_view bytes);

}  // namespace hardgrad::storage
