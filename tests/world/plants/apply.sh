#!/usr/bin/env bash
# apply.sh OUT FILE…: copies these sources to OUT, applies all patches of this folder to the copies, and
# writes OUT/plants_list.c, the list that ../plants.h declares. Without FILE…: prints the sources that
# the patches change.
set -euo pipefail
plants=$(dirname "$(readlink -f "$0")")
root=$(readlink -f "$plants/../../..")

if [ $# -eq 0 ]; then
	sed -n 's|^+++ b/||p' "$plants"/*.patch | sort -u
	exit
fi
out=$1
shift
for file in "$@"; do
	mkdir -p "$out/$(dirname "$file")"
	cp "$root/$file" "$out/$file"
done
{
	printf '#include "tests/world/plants.h"\n\nstatic const struct plant rows[] = {\n'
	for patch in "$plants"/*.patch; do
		patch --quiet --no-backup-if-mismatch --directory "$out" -p1 --fuzz=0 <"$patch" >&2 || {
			printf '%s: does not fit the sources any more\n' "$patch" >&2
			exit 1
		}
		printf '\t{ "%s", "%s", "%s", "%s" },\n' "$(basename "$patch" .patch)" \
			"$(sed -n 's/^rule: //p' "$patch")" "$(sed -n 's/^what: //p' "$patch")" \
			"$(sed -n 's/^rare: //p' "$patch")"
	done
	printf '\t{ NULL, NULL, NULL, NULL },\n};\n\nconst struct plant *plants_all(void)\n{\n\treturn rows;\n}\n'
} >"$out/plants_list.c"
