#!/usr/bin/env bash
# The shell scripts parse, and the set-up prints a clear message without apt or root.
set -euo pipefail
cd "$1"
for script in experiments/quickstart.sh experiments/setup.sh tests/run.sh .ci/run; do bash -n "$script"; done
for script in experiments/quickstart.sh tests/run.sh .ci/run; do [ -x "$script" ] || { echo "$script cannot be executed"; exit 1; }; done
. experiments/setup.sh
# The path has only the programs linked below: no apt, no cmake.
empty="$(mktemp -d)"
trap 'rm -rf "$empty"' EXIT
ln -s "$(command -v cat)" "$empty/cat"
if said="$(PATH="$empty" hardgrad_setup tests 2>&1)"; then echo "set-up succeeded without apt: $said"; exit 1; fi
case "$said" in *"no apt-get"*libxtensor-dev*) ;; *) echo "unclear: $said"; exit 1 ;; esac
# With apt, but with missing packages and without root.
cat >"$empty/apt-get" <<'X'
#!/bin/sh
exit 1
X
printf '#!/bin/sh\nexit 1\n' >"$empty/dpkg-query"
printf '#!/bin/sh\necho 1000\n' >"$empty/id"
chmod +x "$empty"/apt-get "$empty"/dpkg-query "$empty"/id
ln -s "$(command -v sh)" "$empty/sh"
if said="$(PATH="$empty" hardgrad_setup 2>&1)"; then echo "set-up succeeded without root: $said"; exit 1; fi
case "$said" in *"apt-get install cmake"*) ;; *) echo "unclear: $said"; exit 1 ;; esac
echo "the scripts are sound"
