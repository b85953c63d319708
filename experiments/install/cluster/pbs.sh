#!/bin/bash
# A sweep as a job array of PBS (OpenPBS, PBS Professional). Copy this file, change the sweep, the limits and the number of tasks (twice),
# and submit it: qsub pbs.sh. At the time limit PBS sends TERM, and hardgrad saves the running cells.
#PBS -N sweep
#PBS -J 1-4
#PBS -l select=1:ncpus=2
#PBS -l walltime=02:00:00
#PBS -r y
cd "$PBS_O_WORKDIR" || exit 2
exec ~/hardgrad/bin/hardgrad run sweep.toml --jobs 2 --progress plain --shard "$PBS_ARRAY_INDEX/4"
