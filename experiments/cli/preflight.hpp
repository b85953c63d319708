// What is looked at, and said, before hours of work begin.
#pragma once

#include <string>

namespace hardgrad::cli {

/// UsageError now if a file could not be written there later. What killed processes left of earlier attempts is removed.
void require_writable(const std::string& path);
/// Says so where more jobs are asked for than help.
void note_jobs(int asked);
/// Says so, once, where the environment forces a BLAS kernel.
void warn_about_kernel();
/// BLAS on one thread: TBB shares out the work.
void single_threaded_blas();

}  // namespace hardgrad::cli
