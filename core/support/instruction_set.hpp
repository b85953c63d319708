// The vector instructions in use.
#pragma once

#include <string>

namespace hardgrad {

/// The kernels' instruction set by xsimd's name, e.g. "avx512bw", "fma3+avx2", "sse2". A portable build selects it at start.
std::string instruction_set();

}  // namespace hardgrad
