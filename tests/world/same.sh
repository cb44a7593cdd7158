#!/bin/sh
# same.sh PROGRAM OTHER: two builds of the world play the same schedules and print the same, to the
# digest of every event and its time.
set -eu
one=$(mktemp) two=$(mktemp)
trap 'rm -f "$one" "$two"' EXIT
"$1" --schedules 6 --from 3 2>/dev/null >"$one" || :
"$2" --schedules 6 --from 3 2>/dev/null >"$two" || :
grep -q '^digest ' "$one"
cmp "$one" "$two"
