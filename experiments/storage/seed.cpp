// Seeds as text, and back.
#include "experiments/storage/seed.hpp"

#include <fmt/format.h>

#include <exception>

#include "core/support/error.hpp"

namespace hardgrad::storage {

std::string hex_seed(std::uint64_t seed) { return fmt::format("0x{:016x}", seed); }

std::uint64_t parse_seed(const std::string& text) {
  std::size_t used = 0;
  std::uint64_t seed = 0;
  try {
    const bool hexadecimal = text.rfind("0x", 0) == 0;
    seed = std::stoull(text, &used, hexadecimal ? 16 : 10);
  } catch (const std::exception&) {
    used = 0;
  }
  if (text.empty() || text[0] == '-' || used != text.size())
    throw InputError("seed \"" + text + "\" is not a whole number from 0 to 2^64 - 1");
  return seed;
}

}  // namespace hardgrad::storage
