#!/bin/sh
# Very many schedules; what was reached is kept in a file, for ./test to show.
set -eu
"$1" --schedules 200000 --seed 2 >"$2" || { cat "$2"; exit 1; }
cat "$2"
