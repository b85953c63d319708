// A driver of HDF5 for files on disk. It remembers the first error and goes on, because HDF5 cannot close a file after a
// write has failed, and crashes at the end of the process.
#pragma once

#include "experiments/storage/hdf5/file.hpp"

namespace hardgrad::storage::hdf5 {

/// Access by this driver. `error`: receives the number of the first error of the system, and must outlive the file.
Id disk_access(int& error);

}  // namespace hardgrad::storage::hdf5
