// Benchmarks of the parts of a gradient (parts_bench.cpp), of many simultaneous choices (belief_bench.cpp) and of sweeps
// (sweeps_bench.cpp).
#pragma once

namespace hardgrad::benchmarks {

/// Register them.
void add_parts();
void add_belief_networks();
void add_sweeps();

}  // namespace hardgrad::benchmarks
