#!/bin/sh
# same.sh PROGRAM OTHER…: builds of the world play the same schedules and print the same, to the digest
# of every event and its time. Builds of another compiler are named in STOKER_WORLD_BUILDS, by blanks.
set -eu
one=$(mktemp) other=$(mktemp)
trap 'rm -f "$one" "$other"' EXIT
"$1" --schedules 6 --from 3 2>/dev/null >"$one" || :
grep -q '^digest ' "$one"
shift
for build in "$@" ${STOKER_WORLD_BUILDS:-}; do
	"$build" --schedules 6 --from 3 2>/dev/null >"$other" || :
	cmp "$one" "$other"
	echo "$build: the same"
done
