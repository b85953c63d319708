// Who works on which cell of a folder, so that runs that share one share the work too.
//
// A claim is a small file, made so that only one process can make it, and touched now and then for as long as the work goes on:
// a lease. It needs no locks, which some shared file systems lack. That a cell is run by one process alone is a matter of
// thrift: two that ran it all the same would write the same file.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace hardgrad::sweeps {

class Claims {
 public:
  /// Claims in `folder`. A claim that nobody touched for `lease` seconds is void, unless its process is known to be alive; so
  /// is one whose process is known to be dead.
  explicit Claims(std::string folder, double lease = 600);
  /// Gives all back.
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  /// True if the name is now ours; false if another's claim stands.
  bool take(const std::string& name);
  void give_back(const std::string& name);
  void give_all_back();

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name + ".claim"; }
  void touch_all();

  const std::string folder_;
  const double lease_;
  std::mutex mutex_;
  std::map<std::string, std::string> ours_;  ///< name -> what our claim says
  std::jthread heart_;
};

/// The claims that stand in a folder: name -> who holds it, in words ("process 12 on host"). None if it cannot be read.
std::map<std::string, std::string> standing_claims(const std::string& folder, double lease = 600);

/// Removes those that no longer stand; how many there were. (A process killed between writing a cell and giving it back leaves
/// one.)
std::size_t remove_void_claims(const std::string& folder, double lease = 600);

}  // namespace hardgrad::sweeps
