#!/bin/sh
# counts.sh FILE COMMAND…: many schedules on all cores; what they came to is kept in FILE, for ./test to show.
set -eu
file=$1
shift
"$@" --seed 1 --jobs "$(nproc)" >"$file" || { cat "$file"; exit 1; }
cat "$file"
