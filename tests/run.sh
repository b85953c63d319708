#!/usr/bin/env bash
# Installs missing packages, builds the project, runs CTest.
#
#   bash tests/run.sh [ARGUMENTS OF CTEST]            the default tests
#   bash tests/run.sh --all [ARGUMENTS OF CTEST]      also the long tests; installs their packages
#   bash tests/run.sh --share K [ARGUMENTS OF CTEST]  the default and one of the four shares of the long tests, K = 0 to 3
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/setup.sh
packages=(tests)
left_out=(-LE '^long-')
case "${1-}" in
  --all)
    packages=(tests long) left_out=()
    shift
    ;;
  --share)
    [[ "${2-}" =~ ^[0-3]$ ]] || { echo "tests/run.sh: --share takes 0, 1, 2 or 3" >&2; exit 2; }
    packages=(tests long) left_out=(-LE "^long-[^$2]")
    shift 2
    ;;
esac
hardgrad_setup "${packages[@]}"
if [ "${packages[*]}" != tests ]; then hardgrad_ruff; fi
hardgrad_build
# One test runs per core, so Python's libraries use one thread each.
export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
exec "${hardgrad_cmake%cmake}ctest" --preset release --parallel "$(hardgrad_cores)" ${left_out[@]+"${left_out[@]}"} "$@"
