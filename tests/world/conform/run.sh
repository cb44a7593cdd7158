#!/bin/sh
# The same scripts against the real kernel and against the world: their results must be equal.
#
#	run.sh PROGRAMS FIRST_SEED SEEDS OPERATIONS
#
# PROGRAMS is the folder of conform_real and conform_world. A tmpfs and an ext4 are looked for; where
# there is none, that half is skipped, and said to be.
set -u
programs=$1 first=$2 seeds=$3 operations=$4
results=$(mktemp -d) || exit 2
trap 'rm -rf "$results"' EXIT
failed=0 played=0

play() { # KIND FOLDER
	"$programs/conform_real" "$2" "$first" "$seeds" "$operations" >"$results/real" || failed=1
	"$programs/conform_world" "$1" "$first" "$seeds" "$operations" >"$results/world" || failed=1
	lines=$(wc -l <"$results/real")
	if [ "$lines" -ne $((seeds * operations)) ]; then
		echo "$1: $lines results instead of $((seeds * operations))"
		failed=1
	elif ! cmp -s "$results/real" "$results/world"; then
		echo "$1: the world (>) is not as the kernel (<) on $2:"
		diff "$results/real" "$results/world" | head -n 40
		failed=1
	else
		echo "$1: $lines results are equal to those of the kernel on $2"
		played=$((played + 1))
	fi
}

kind_of() { stat -f -c %T "$1" 2>/dev/null; }
for folder in /dev/shm "${TMPDIR:-/tmp}" /var/tmp; do
	[ "$(kind_of "$folder")" = tmpfs ] && [ -w "$folder" ] && play memory "$folder" && break
done
for folder in "${TMPDIR:-/tmp}" /var/tmp "$programs"; do
	[ "$(kind_of "$folder")" = ext2/ext3 ] && [ -w "$folder" ] && play local "$folder" && break
done
[ "$failed" -eq 0 ] || exit 1
[ "$played" -eq 2 ] && exit 0
echo "skipped: a tmpfs and an ext4 are not both there"
exit 77 # which counts it as skipped: CMakeLists.txt
