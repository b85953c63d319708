#!/bin/bash
# A sweep as a job array of Grid Engine (SGE, Univa, Altair). Copy this file, change the sweep, the limits, the parallel environment (smp;
# qconf -spl lists those of the site) and the number of tasks (twice), and submit it: qsub sge.sh. At the time limit Grid Engine kills
# the task; the work since the last checkpoint, at most a minute, is lost.
#$ -N sweep
#$ -t 1-4
#$ -pe smp 2
#$ -l h_rt=02:00:00
#$ -S /bin/bash
#$ -cwd
#$ -j y
#$ -r y
exec ~/hardgrad/bin/hardgrad run sweep.toml --jobs 2 --progress plain --shard "$SGE_TASK_ID/4"
