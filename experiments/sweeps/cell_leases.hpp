// Leases of cells, so that runs with a common folder share the work.
//
// A lease is a small file that only one process can create, and that this process touches regularly while it works.
// Leases need no locks, which some shared file systems lack. They only avoid duplicate work: two processes that run the same
// cell write the same file.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace hardgrad::sweeps {

class CellLeases {
 public:
  /// Leases in `folder`. A lease is void if its process is known to be dead, or if it was not touched for `lifetime` seconds
  /// and its process is not known to be alive.
  explicit CellLeases(std::string folder, double lifetime = 600);
  /// Releases all leases.
  ~CellLeases();
  CellLeases(const CellLeases&) = delete;
  CellLeases& operator=(const CellLeases&) = delete;

  /// True if this process now has the name; false if another process has a valid lease.
  bool take(const std::string& name);
  void give_back(const std::string& name);
  void give_all_back();

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + name + ".claim"; }
  void touch_all();

  const std::string folder_;
  const double lifetime_;
  std::mutex mutex_;
  std::map<std::string, std::string> ours_;  ///< name -> text of our lease
  std::jthread heart_;
};

/// The valid leases in a folder: name -> holder ("process 12 on host"). Empty if the folder cannot be read.
std::map<std::string, std::string> valid_leases(const std::string& folder, double lifetime = 600);

/// Removes void leases; returns their number. (A process killed between writing a cell and releasing its lease leaves one.)
std::size_t remove_void_leases(const std::string& folder, double lifetime = 600);

}  // namespace hardgrad::sweeps
