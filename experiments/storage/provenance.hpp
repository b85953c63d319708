// Provenance of results: build, machine, BLAS kernel, time.
#pragma once

#include <map>
#include <string>

#include "experiments/storage/dataset.hpp"

namespace hardgrad::storage {

/// git_commit, git_dirty, compiler, flags, version, blas, blas_kernel, instruction_set, cpu, threads.
std::map<std::string, std::string> provenance();
/// The number of threads provenance() reports; the machine's until it is called.
void provenance_threads(int threads);
/// The kernel OpenBLAS runs, e.g. "SkylakeX"; "none" if the program has no OpenBLAS.
std::string blas_kernel();
/// Now, ISO 8601, UTC.
std::string timestamp();
/// Appends provenance as attributes, after created_at.
void add_provenance(Attributes& attributes, const std::map<std::string, std::string>& provenance);

}  // namespace hardgrad::storage
