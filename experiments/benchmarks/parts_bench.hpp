// Benchmarks of what gradients are made of (parts_bench.cpp) and of what they make up (sweeps_bench.cpp).
#pragma once

namespace hardgrad::benchmarks {

/// Register them.
void add_parts();
void add_sweeps();

}  // namespace hardgrad::benchmarks
