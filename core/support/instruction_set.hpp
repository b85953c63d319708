// Which vector instructions the numbers are computed with.
#pragma once

#include <string>

namespace hardgrad {

/// The kernels' instruction set by xsimd's name, e.g. "avx512bw", "fma3+avx2", "sse2"; a portable build chooses it when it
/// starts.
std::string instruction_set();

}  // namespace hardgrad
