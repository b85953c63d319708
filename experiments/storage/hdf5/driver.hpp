// A driver of HDF5 for files on disk and in memory. It remembers the first error and goes on, because HDF5 cannot close a file
// after a write has failed, and crashes at the end of the process.
#pragma once

#include "experiments/storage/hdf5/file.hpp"

namespace hardgrad::storage::hdf5 {

/// Access by this driver to a new file on disk. `error`: receives the number of the first error of the system, and must outlive
/// the file.
Id disk_access(int& error);
/// The same to the first `end` bytes of a file that is open to be read, and stays so.
Id disk_access(int& error, int descriptor, std::size_t end);
/// The same to a new file in memory: `bytes`, which must outlive it, are its content once it is closed.
Id memory_access(int& error, std::string& bytes);

}  // namespace hardgrad::storage::hdf5
