// Unique names of processes that write to one folder. Process ids alone repeat on other machines and in containers.
#pragma once

#include <string>

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

}  // namespace hardgrad::storage
