// Checks and notes before long work starts.
#pragma once

#include <string>

namespace hardgrad::cli {

/// UsageError if the file could not be written later. Removes half-written files of killed processes.
void require_writable(const std::string& path);
/// Prints a note if more jobs are requested than are useful.
void note_jobs(int asked);
/// Warns once if the environment forces a BLAS kernel.
void warn_about_kernel();
/// Returns the status for `main`. If the address space is limited, the process ends here: a BLAS thread without memory at its
/// start never ends, and an exit would wait for it.
int leave(int status);
/// Sets BLAS to one thread: TBB distributes the work.
void single_threaded_blas();

}  // namespace hardgrad::cli
