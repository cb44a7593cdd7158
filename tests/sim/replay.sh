#!/bin/sh
# A broken rule is printed with one command; that command plays the same
# schedule to the same end and shows its timeline.
set -eu
first=$("$1" --plant retry-permission --schedules 20000 --seed 6) ||
	{ echo "the planted bug was not noticed"; exit 1; }
said=$(printf '%s\n' "$first" | sed -n 1p)
command=$(printf '%s\n' "$first" | sed -n 's/^replay: //p')
test -n "$command" || { echo "no command was printed"; exit 1; }
second=$(sh -c "$command")
test "$(printf '%s\n' "$second" | tail -n 1)" = "$said" ||
	{ echo "the replay ended otherwise"; printf '%s\n' "$second" | tail -n 3; exit 1; }
printf '%s\n' "$second" | grep -q 'attempt.ended .* class quota-permission' ||
	{ echo "the timeline does not show what happened"; exit 1; }
