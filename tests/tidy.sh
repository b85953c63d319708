#!/usr/bin/env bash
# clang-tidy as .clang-tidy has it, over the product (or over the sources that match the arguments). It takes half an hour, so it
# is run by hand after larger changes; formatting is a test. Tests are left out: clang 14 cannot read doctest's messages of
# structured bindings.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -f build/develop/compile_commands.json ] || cmake --preset develop >/dev/null  # it knows every file by itself
cmake --build --preset develop --target hardgrad_provenance >/dev/null  # a header that is made
exec run-clang-tidy -quiet -p build/develop -extra-arg=-Wno-unknown-warning-option "${@:-^(?!.*/tests/).*/(core|estimators|experiments)/.*\.cpp$}"
