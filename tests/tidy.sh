#!/usr/bin/env bash
# Runs clang-tidy with the checks of .clang-tidy on all sources but tests, or on the sources that match the arguments. It takes half
# an hour, so it is run by hand after larger changes; formatting is a test. Tests are excluded because clang 14 cannot compile
# doctest messages that use structured bindings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/setup.sh
[ -f build/develop/compile_commands.json ] || "$hardgrad_cmake" --preset develop >/dev/null  # it compiles every file separately
"$hardgrad_cmake" --build --preset develop --target hardgrad_provenance >/dev/null  # a generated header
exec run-clang-tidy -quiet -p build/develop -extra-arg=-Wno-unknown-warning-option "${@:-^(?!.*/tests/).*/(core|estimators|experiments)/.*\.cpp$}"
