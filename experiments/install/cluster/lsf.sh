#!/bin/bash
# A sweep as a job array of LSF. Copy this file, change the sweep, the limits and the number of tasks (twice), and submit it:
# bsub < lsf.sh. Tasks start in the folder of the submission. Two minutes before the time limit LSF sends TERM, and hardgrad saves the
# running cells. A task whose machine fails is queued again.
#BSUB -J "sweep[1-4]"
#BSUB -n 2
#BSUB -R "span[hosts=1]"
#BSUB -W 2:00
#BSUB -wt 2 -wa TERM
#BSUB -r
exec ~/hardgrad/bin/hardgrad run sweep.toml --jobs 2 --progress plain --shard "$LSB_JOBINDEX/4"
