#!/bin/sh
# Starts the agent in whose folder it lies, whatever brought that folder here: an object
# store keeps no modes, an input channel may be read-only, a file system may run nothing.
#
# usage: sh FOLDER/start ORDER RANK    (ORDER "-": the one that STOKER_ORDER names)
#
# For the shell of a small image: busybox ash and dash, with mkdir, cp and chmod where the
# folder must be copied.
set -u

complain() {
	echo "stoker: $1" >&2
	exit "$2"
}

# Does the loader run from there, and does it know the agent?
runs() {
	"$1/lib/loader" --verify "$1/stoker-node" >/dev/null 2>&1
}

# A fresh folder that is nobody else's; its name goes to $fresh.
make_fresh() {
	number=0
	while [ $number -lt 20 ]; do
		fresh=$1/stoker-agent.$$.$number
		(umask 077 && mkdir "$fresh") 2>/dev/null && return 0
		number=$((number + 1))
	done
	return 1
}

# The folder elsewhere, made executable; where it now lies goes to $dir.
move_away() {
	for base in "${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm; do
		make_fresh "$base" || continue
		if mkdir "$fresh/lib" && cp "$dir/stoker-node" "$fresh/" &&
			cp "$dir"/lib/* "$fresh/lib/" &&
			chmod 700 "$fresh/stoker-node" "$fresh/lib/loader" && runs "$fresh"; then
			dir=$fresh
			return 0
		fi
	done
	return 1
}

[ $# -eq 2 ] || complain "usage: sh FOLDER/start ORDER RANK (started by an engine of stoker)" 70
case $0 in
*/*) dir=${0%/*} ;;
*) dir=. ;;
esac
order=$1
[ "$order" != - ] || order=${STOKER_ORDER-}
[ -n "$order" ] || complain "there is no order in STOKER_ORDER" 70
if [ ! -f "$dir/lib/loader" ] || [ ! -f "$dir/stoker-node" ]; then
	complain "there is no whole agent in '$dir': stoker-node or lib/loader is missing" 127
fi
if ! runs "$dir"; then
	chmod 700 "$dir/stoker-node" "$dir/lib/loader" 2>/dev/null
	runs "$dir" || move_away ||
		complain "cannot run the agent of '$dir': neither there nor in ${TMPDIR:-/tmp}, /tmp, /var/tmp or /dev/shm can a program be executed ($(uname -m 2>/dev/null || echo another machine))" 126
fi
exec "$dir/lib/loader" --library-path "$dir/lib" "$dir/stoker-node" "$order" "$2"
