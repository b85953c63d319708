#include "core/support/instruction_set.hpp"

#include <xsimd/xsimd.hpp>

namespace hardgrad {

std::string instruction_set() { return xsimd::default_arch::name(); }

}  // namespace hardgrad
