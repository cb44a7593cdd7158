#!/bin/sh
# counts.sh WORLD N FILE: many schedules on all cores; what they reached is kept in FILE, for ./test to show.
set -eu
"$1" --schedules "$2" --seed 1 --jobs "$(nproc)" >"$3" || { cat "$3"; exit 1; }
cat "$3"
