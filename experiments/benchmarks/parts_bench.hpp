// Benchmarks of what gradients are made of; see parts_bench.cpp.
#pragma once

namespace hardgrad::benchmarks {

/// Registers them.
void add_parts();

}  // namespace hardgrad::benchmarks
