#!/usr/bin/env bash
# Every test: installs what is missing, builds everything, runs CTest. Arguments go to ctest (-R name, -j 4).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/setup.sh
hardgrad_setup tests
hardgrad_build
# As many tests at a time as cores: within one, Python's libraries are to take no second core for themselves.
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
exec ctest --preset release --parallel "$(hardgrad_cores)" "$@"
