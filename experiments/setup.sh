# Installs missing packages; sourced by quickstart.sh and tests/run.sh. An array that may be empty is expanded as ${a[@]+"${a[@]}"}: with
# `set -u`, bash before 4.4 calls it unbound.

# From CMake's files, where each version stands once. The rows of the libraries: name, least version, package of Debian, of conda-forge.
hardgrad_tree="$(dirname "${BASH_SOURCE[0]}")/.."
hardgrad_libraries="$(sed -n 's/^  "\([^"]*\)")*$/\1/p' "$hardgrad_tree/core/dependencies.cmake")"
hardgrad_compilers="$(awk -F'[_ )]' '/^set.HARDGRAD_LEAST_/ { printf "%s%s %s", n++ ? " or " : "", $3, $4 }' "$hardgrad_tree/core/dependencies.cmake")"
hardgrad_least_cmake="$(sed -n 's/^cmake_minimum_required(VERSION \(.*\))/\1/p' "$hardgrad_tree/CMakeLists.txt")"

hardgrad_packages=(
  cmake ninja-build make g++ ccache git
  $(awk '{ print $3 }' <<<"$hardgrad_libraries")
  python3 python3-dev python3-numpy python3-h5py python3-h5netcdf python3-xarray python3-scipy python3-pandas python3-matplotlib
  hdf5-tools)
hardgrad_test_packages=(clang-format python3-pytest python3-mpmath)
hardgrad_long_packages=(
  debootstrap clang-tidy python3-torch python3-netcdf4 python3-selenium chromium chromium-driver mypy python3-pip python3-venv python3-tomli-w
  python3-nbclient python3-ipykernel zsh fish
  python3-sphinx python3-myst-parser python3-breathe furo doxygen
  r-base-core r-bioc-rhdf5 qemu-user g++-aarch64-linux-gnu dataset-fashion-mnist slurmctld slurmd slurm-client munge)
case "$(sed -n 's/^VERSION_ID="*\([0-9.]*\).*/\1/p' /etc/os-release 2>/dev/null)" in
  12) hardgrad_long_packages+=(clang-16) ;;  # the package clang is version 14
  *) hardgrad_long_packages+=(clang) ;;
esac

# hardgrad_setup [tests] [long]: installs the packages for building and running, and those for the tests and the long tests.
hardgrad_setup() {
  local wanted=("${hardgrad_packages[@]}") missing=() package kind
  for kind in "$@"; do
    case "$kind" in
      tests) wanted+=("${hardgrad_test_packages[@]}") ;;
      long) wanted+=("${hardgrad_long_packages[@]}") ;;
    esac
  done

  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    if command -v cmake >/dev/null && command -v ninja >/dev/null; then
      echo "setup: not Debian or Ubuntu; continuing with the installed software. Hardgrad needs:" >&2
      hardgrad_explain >&2
      return 0
    fi
    echo "setup: packages cannot be installed here (no apt-get). Install these, then run this again:" >&2
    hardgrad_explain >&2
    return 2
  fi

  for package in "${wanted[@]}"; do
    case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" in
      installed) ;;
      *) missing+=("$package") ;;
    esac
  done
  [ ${#missing[@]} -gt 0 ] || return 0

  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
      root=(sudo)
    else
      echo "setup: packages are missing, and root or sudo is not available. Ask an administrator to run:" >&2
      echo "  apt-get install ${missing[*]}" >&2
      return 2
    fi
  fi
  echo "setup: installing ${missing[*]}" >&2
  ${root[@]+"${root[@]}"} apt-get update -q >&2 &&
    ${root[@]+"${root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" >&2 || {
      echo "setup: apt-get failed (see above) for these packages: ${missing[*]}" >&2
      return 2
    }
  hardgrad_choose
}

# hardgrad_ruff: the formatter of Python sources in build/ruff, in the version of pyproject.toml. (Debian 12 has no package of it.)
hardgrad_ruff() {
  local version
  version="$(sed -n 's/^required-version = "==\(.*\)"$/\1/p' pyproject.toml)"
  [ "$(build/ruff/bin/ruff --version 2>/dev/null)" != "ruff $version" ] || return 0
  echo "setup: installing ruff $version in build/ruff" >&2
  "$hardgrad_python" -m venv build/ruff >&2 &&
    build/ruff/bin/python -m pip install --quiet --disable-pip-version-check "ruff==$version" >&2 ||
    echo "setup: pip cannot get ruff $version (see above): its test is skipped" >&2
}

hardgrad_explain() {
  local name least conda _
  echo "  Ninja, git, CMake $hardgrad_least_cmake, C++20 ($hardgrad_compilers) and these libraries, or later versions:"
  while read -r name least _ conda; do echo "    $name $least (conda-forge: $conda)"; done <<<"$hardgrad_libraries"
  echo "On Debian these are the packages:"
  echo "  ${hardgrad_packages[*]}"
  echo "and for the tests"
  echo "  ${hardgrad_test_packages[*]} ${hardgrad_long_packages[*]}"
}

# hardgrad_cores: the number of available cores. (nproc is limited by OMP_NUM_THREADS, which is meant for Python's libraries.)
hardgrad_cores() {
  env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || echo 2
}

# hardgrad_build [cmake --build arguments]: configures and builds the preset $hardgrad_preset.
hardgrad_preset=release
hardgrad_build() {
  local log of fresh=()
  # A copied or moved tree contains a build of another folder, which CMake rejects.
  of="$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "build/$hardgrad_preset/CMakeCache.txt" 2>/dev/null || true)"
  if [ -n "$of" ] && ! [ "$of" -ef . ]; then fresh=(--fresh); fi
  log="$(mktemp)"
  if ! "$hardgrad_cmake" --preset "$hardgrad_preset" ${fresh[@]+"${fresh[@]}"} >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
  "$hardgrad_cmake" --build --preset "$hardgrad_preset" --parallel "$(hardgrad_cores)" "$@"
}

# hardgrad_choose: the Python and the CMake of every step are Debian's, even if others come first on the path. Debian's Python has the
# packages above, and its CMake fits the package files of its libraries. (CMake 4 also works if it accepts their version requirements.)
hardgrad_choose() {
  hardgrad_python=/usr/bin/python3
  [ -x "$hardgrad_python" ] || hardgrad_python=python3
  hardgrad_cmake=/usr/bin/cmake
  case "$("$hardgrad_cmake" --version 2>/dev/null)" in
    "cmake version 3.2"[5-9]* | "cmake version 3."[3-9]* | "cmake version "[4-9].*) ;;
    *) hardgrad_cmake=cmake ;;  # missing, or too old
  esac
}
hardgrad_choose
