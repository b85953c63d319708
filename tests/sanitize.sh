#!/usr/bin/env bash
# Runs all tests under a sanitizer, or the K-th of N parts: tests/sanitize.sh address|thread [K/N] [ARGUMENTS OF CTEST].
# A full run takes hours; parts may run on different machines or days. CTest lists the failed tests at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case "${1-}" in
  address) preset=sanitize ;;
  thread) preset=thread-sanitize ;;
  *) echo "usage: tests/sanitize.sh address|thread [K/N] [ARGUMENTS OF CTEST]" >&2; exit 2 ;;
esac
shift
pieces=()
if [[ "${1-}" =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]]; then
  [ "${BASH_REMATCH[1]}" -le "${BASH_REMATCH[2]}" ] || { echo "tests/sanitize.sh: there is no part $1" >&2; exit 2; }
  pieces=(-I "${BASH_REMATCH[1]},,${BASH_REMATCH[2]}")  # every N-th test, starting with the K-th
  shift
fi
. experiments/setup.sh
hardgrad_setup tests long
"$hardgrad_cmake" --preset "$preset"
"$hardgrad_cmake" --build --preset "$preset"
exec "${hardgrad_cmake%cmake}ctest" --preset "$preset" --parallel "$(hardgrad_cores)" ${pieces[@]+"${pieces[@]}"} "$@"
