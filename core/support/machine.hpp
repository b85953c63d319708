// The machine: processor time of the calling thread, memory of the process (Linux), and the vector instructions in use.
#pragma once

#include <cstddef>
#include <string>

namespace hardgrad {

/// Processor seconds of the calling thread, including its system calls. Other load on the machine is not counted.
double thread_seconds();

/// Memory in use now, in bytes; 0 if it cannot be read.
std::size_t resident_bytes();
/// Peak memory in use, since the start or the last `forget_peak`.
std::size_t peak_resident_bytes();
void forget_peak();

/// The kernels' instruction set by xsimd's name, e.g. "avx512bw", "fma3+avx2", "sse2". A portable build selects it at start.
std::string instruction_set();

}  // namespace hardgrad
