// Who a process is, among all that may write to one folder: other machines and containers have our process numbers too.
#pragma once

#include <string>

namespace hardgrad::storage {

/// "<place>-<pid>-<start>": the place is a hash of machine, boot and pid namespace; the start, in ticks since that boot, tells
/// processes apart that had one number after the other.
const std::string& this_process();

enum class Life {
  alive,
  dead,
  elsewhere  ///< of another place, or no name of a process: nobody here can tell
};
/// Whether the process of such a name still runs.
Life life_of(const std::string& process);

/// 16 hexadecimal digits that no other process has drawn.
std::string random_name();

}  // namespace hardgrad::storage
