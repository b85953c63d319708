// This process: its name among those that write to one folder, and the provenance of its results.
#pragma once

#include <map>
#include <string>

#include "experiments/storage/dataset.hpp"

namespace hardgrad::storage {

/// "<place>-<pid>-<start>": the place is a hash of machine, boot and pid namespace; the start, in ticks since that boot,
/// distinguishes processes that had the same pid at different times.
const std::string& this_process();

enum class Life {
  alive,
  dead,
  elsewhere  ///< another place, or not the name of a process: unknown
};
/// Whether the process with this name still runs.
Life life_of(const std::string& process);

/// 16 random hexadecimal digits, unique among processes.
std::string random_name();

// Provenance of results: build, machine, BLAS kernel, time.

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
