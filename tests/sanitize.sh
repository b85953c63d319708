#!/usr/bin/env bash
# Every test under a sanitizer, or one of n pieces of them: tests/sanitize.sh address|thread [K/N] [ARGUMENTS OF CTEST].
# All of it takes hours; pieces may run on different machines or days. What is named at the end has failed.
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
  [ "${BASH_REMATCH[1]}" -le "${BASH_REMATCH[2]}" ] || { echo "tests/sanitize.sh: there is no piece $1" >&2; exit 2; }
  pieces=(-I "${BASH_REMATCH[1]},,${BASH_REMATCH[2]}")  # every N-th test from the K-th on
  shift
fi
. experiments/setup.sh
hardgrad_setup tests long
"$hardgrad_cmake" --preset "$preset"
"$hardgrad_cmake" --build --preset "$preset"
exec "${hardgrad_cmake%cmake}ctest" --preset "$preset" --parallel "$(hardgrad_cores)" "${pieces[@]}" "$@"
