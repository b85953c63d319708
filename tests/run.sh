#!/usr/bin/env bash
# Every test: installs what is missing, builds everything, runs CTest. Arguments go to ctest (-R name, -j 4).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/setup.sh
hardgrad_setup tests
hardgrad_build
exec ctest --preset release --parallel "$(nproc 2>/dev/null || echo 2)" "$@"
