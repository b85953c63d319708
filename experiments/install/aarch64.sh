#!/usr/bin/env bash
# Builds the preset `portable` for AArch64 on an x86-64 machine with Debian, and runs the program emulated:
#
#   bash experiments/install/aarch64.sh [TARGETS OF THE BUILD]   default: hardgrad
#
# On an AArch64 machine `bash experiments/quickstart.sh` does all this without a cross compiler. Debian's arm64 libraries are unpacked in
# build/aarch64/system; nothing is installed. The build is build/aarch64/build: its programs run by `qemu-aarch64 -L
# build/aarch64/system`, and CTest there runs C++ tests in the same way. Prints SKIPPED if a tool or a package cannot be had.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. experiments/setup.sh
place="$PWD/build/aarch64"
system="$place/system"

for tool in aarch64-linux-gnu-g++ qemu-aarch64 apt-get dpkg-deb; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIPPED: $tool is missing (Debian: g++-aarch64-linux-gnu, qemu-user)"
    exit 0
  fi
done

if ! [ -d "$system" ]; then
  packages=(libc6-dev libstdc++6 $(awk '$1 != "pybind11" && $1 != "benchmark" { print $3 }' <<<"$hardgrad_libraries"))
  rm -rf "$place/apt" "$system.partial"
  mkdir -p "$place/apt/state/lists/partial" "$place/apt/cache/archives/partial" "$system.partial"
  : >"$place/apt/installed"  # nothing is: apt fetches the packages with everything that they depend on
  apt=(apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o "Dir::State=$place/apt/state"
    -o "Dir::State::status=$place/apt/installed" -o "Dir::Cache=$place/apt/cache")
  if ! { "${apt[@]}" update && "${apt[@]}" install -y --no-install-recommends --download-only "${packages[@]}"; } >"$place/apt/log" 2>&1; then
    tail -n 3 "$place/apt/log"
    echo "SKIPPED: apt cannot get the arm64 packages (build/aarch64/apt/log)"
    exit 0
  fi
  for package in "$place"/apt/cache/archives/*.deb; do dpkg-deb -x "$package" "$system.partial"; done
  # Links from the root lead out of the folder. dpkg would also make OpenBLAS's links ("alternatives").
  find "$system.partial" -lname '/*' | while read -r link; do ln -sfnr "$system.partial$(readlink "$link")" "$link"; done
  for file in "$system.partial"/usr/{lib,include}/aarch64-linux-gnu/openblas-pthread/*; do
    [ -e "${file%/*/*}/${file##*/}" ] || ln -s "openblas-pthread/${file##*/}" "${file%/*/*}/"
  done
  rm -rf "$place/apt"
  mv "$system.partial" "$system"
fi

# HDF5's own h5cc, if CMake finds one, is that of the x86-64 machine.
"$hardgrad_cmake" --preset portable -B "$place/build" -D CMAKE_SYSTEM_NAME=Linux -D CMAKE_SYSTEM_PROCESSOR=aarch64 \
  -D CMAKE_C_COMPILER=aarch64-linux-gnu-gcc -D CMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -D CMAKE_SYSROOT="$system" \
  -D CMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -D CMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -D CMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY \
  -D CMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY -D HDF5_C_COMPILER_EXECUTABLE="$system/usr/bin/h5cc" \
  -D CMAKE_CROSSCOMPILING_EMULATOR="qemu-aarch64;-L;$system" -D HARDGRAD_PYTHON_PACKAGE=OFF -D HARDGRAD_BENCHMARKS=OFF >/dev/null
"$hardgrad_cmake" --build "$place/build" --parallel "$(hardgrad_cores)" --target "${@:-hardgrad}"
if [ -x "$place/build/hardgrad" ]; then qemu-aarch64 -L "$system" "$place/build/hardgrad" --version; fi
