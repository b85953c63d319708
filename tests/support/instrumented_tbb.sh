#!/usr/bin/env bash
# oneTBB for the thread sanitizer: instrumented_tbb.sh FOLDER CMAKE builds the installed version from Debian's source with
# this CMake and installs it in FOLDER. The sanitizer cannot observe the synchronisation of the packaged library (the begin
# and end of a loop).
set -euo pipefail
prefix=$1 cmake=$2
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
version="$(dpkg-query -W -f '${source:Version}' libtbb-dev)"
mkdir -p "$work/parts" "$work/lists/partial" "$work/source"
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
  [ ! -f "$list" ] || sed -E 's/^Types:.*/Types: deb-src/; s/^deb([[:space:]])/deb-src\1/' "$list" >"$work/parts/${list##*/}"
done
apt=(apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/parts" -o "Dir::State::lists=$work/lists"
  -o APT::Sandbox::User=root)
cd "$work/source"
"${apt[@]}" update
"${apt[@]}" source --download-only "onetbb=$version"
tar -xf onetbb_*.orig.tar.* --strip-components=1
"$cmake" -S . -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTBB_SANITIZE=thread -DTBB_TEST=OFF -DTBBMALLOC_BUILD=OFF \
  -DTBB_STRICT=OFF
"$cmake" --build "$work/build"
rm -rf "$prefix.partial"
"$cmake" --install "$work/build" --prefix "$prefix.partial"
mv "$prefix.partial" "$prefix"
