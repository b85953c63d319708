// A dataset as a short string: CBOR (RFC 8949) with typed arrays (RFC 8746), compressed by zlib.
#pragma once

#include <string>
#include <string_view>

#include "experiments/storage/dataset.hpp"

namespace hardgrad::storage {

/// {"axes": [[name, labels] ...], "variables": [[name, [axis ...], values, family, key] ...], "attributes": {name: value}}.
/// Numbers are little-endian typed arrays with all their bits, a NaN's too; strings are arrays of text. `family` and `key`, the
/// map and key that a column belongs to, are omitted if there are none. Other attributes of axes and variables only describe
/// them and are omitted.
std::string packed(const Dataset& data);
/// InputError if the bytes are not of this form.
Dataset unpacked(std::string_view bytes);
/// InputError if the bytes are not compressed CBOR of whole items: a fraction of the time of `unpacked`.
void require_items(std::string_view bytes);

}  // namespace hardgrad::storage
