#!/usr/bin/env bash
# The package's tests with NumPy 2, PyTorch 2 and JAX: tests/experiments/python/today.sh [python] makes an environment of that Python
# (default: Debian's) in build/today, installs the wheel of experiments/python/wheel.sh there, and runs the tests in it. Prints SKIPPED
# if pip cannot get a package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
. experiments/setup.sh
python="${1:-$hardgrad_python}"
wanted=('numpy>=2' torch==2.13.0 jax pytest h5py h5netcdf xarray scipy pandas matplotlib tomli-w nbclient ipykernel)
unset PYTHONPATH PYTHONHOME
place="build/today/$("$python" -c 'import sys; print(sys.implementation.cache_tag)')"

# The environment is made anew for another Python of this version, or in a copied or moved tree.
made_of="$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable), sys.base_prefix)') $PWD"
if [ "$(cat "$place/made-of" 2>/dev/null)" != "$made_of" ]; then
  rm -rf "$place"
  if ! "$python" -m venv "$place"; then
    echo "SKIPPED: $python makes no environment (Debian: python3-venv)"
    exit 0
  fi
  echo "$made_of" >"$place/made-of"
fi
inside="$place/bin/python"
if ! "$inside" -m pip install --quiet --disable-pip-version-check "${wanted[@]}"; then
  echo "SKIPPED: pip cannot get ${wanted[*]}"
  exit 0
fi
bash experiments/python/wheel.sh "$python"
HARDGRAD_WHEEL="$(ls "$PWD"/build/wheels/hardgrad-*-cp"${place##*cpython-}"-*.whl)"
export HARDGRAD_WHEEL
"$inside" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$HARDGRAD_WHEEL"
"$inside" -c 'import sys, numpy, torch, hardgrad; print("Python", sys.version.split()[0], "NumPy", numpy.__version__, "PyTorch", torch.__version__)'
# The wheel's program: the one of another build rounds differently.
HARDGRAD_BINARY="$("$inside" -c 'from hardgrad.program import PROGRAM; print(PROGRAM)')"
export HARDGRAD_BINARY PYTHONDONTWRITEBYTECODE=1
exec "$inside" -m pytest -q -rs -p no:cacheprovider tests/experiments/python
