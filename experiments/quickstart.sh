#!/usr/bin/env bash
# From a new Debian to a first result: installs missing packages, builds, runs the quick-start sweep, draws figures, writes a report.
# It can be run again at any time; finished steps are not repeated.
#
#   bash experiments/quickstart.sh [PRESET]   builds that preset of CMakePresets.json (default: release, for this machine's processor)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/setup.sh
hardgrad_preset="${1:-$hardgrad_preset}"
hardgrad="build/$hardgrad_preset/hardgrad"
hardgrad_setup
hardgrad_build --target hardgrad
mkdir -p results
"$hardgrad" run experiments/configs/quickstart.toml --force
"$hardgrad" merge results/quickstart-run --out results/quickstart.h5
export PYTHONDONTWRITEBYTECODE=1
"$hardgrad_python" -m analysis draw results/quickstart.h5 --out results/quickstart
"$hardgrad_python" -m analysis report results/quickstart.h5 >/dev/null
echo
echo "report:  results/quickstart.html (open it in a browser; it is self-contained)"
echo "numbers: results/quickstart.h5"
echo "figures: results/quickstart/*.png and *.svg"
