// Claims of cells, so that runs with a common folder share the work.
//
// A claim is a small file that only one process can create, and that this process touches regularly while it works: a lease.
// Claims need no locks, which some shared file systems lack. They only avoid duplicate work: two processes that run the same
// cell write the same file.
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
  /// Claims in `folder`. A claim is void if its process is known to be dead, or if it was not touched for `lease` seconds and
  /// its process is not known to be alive.
  explicit Claims(std::string folder, double lease = 600);
  /// Releases all claims.
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  /// True if this process now has the name; false if another process has a valid claim.
  bool take(const std::string& name);
  void give_back(const std::string& name);
  void give_all_back();

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name + ".claim"; }
  void touch_all();

  const std::string folder_;
  const double lease_;
  std::mutex mutex_;
  std::map<std::string, std::string> ours_;  ///< name -> text of our claim
  std::jthread heart_;
};

/// The valid claims in a folder: name -> holder ("process 12 on host"). Empty if the folder cannot be read.
std::map<std::string, std::string> standing_claims(const std::string& folder, double lease = 600);

/// Removes void claims; returns their number. (A process killed between writing a cell and releasing its claim leaves one.)
std::size_t remove_void_claims(const std::string& folder, double lease = 600);

}  // namespace hardgrad::sweeps
