// What is looked at, and said, before hours of work begin.
#pragma once

#include <string>

namespace hardgrad::cli {

/// UsageError now if a file could not be written there later. What killed processes left of earlier attempts is removed.
void require_writable(const std::string& path);
/// Says so where more jobs are asked for than help.
void note_jobs(int asked);
/// Says so, once, where the environment forces a BLAS kernel. UsageError where a limit leaves less memory than threads and BLAS
/// begin with: they would end without a word, or wait for ever.
void prepare_to_compute();
/// The status, to return from `main`; the process ends here where its address space is limited: a thread of BLAS that found no
/// memory at its start never ends, and an exit would wait for it.
int leave(int status);
/// BLAS on one thread: TBB shares out the work.
void single_threaded_blas();

}  // namespace hardgrad::cli
