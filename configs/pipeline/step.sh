#!/bin/bash
# A step of a pipeline: usage: step.sh SPEC ID. Killed and repeated, it continues the same run; for a
# run that has ended it returns the same exit code again.
set -u
stoker validate "$1" || exit
stoker run "$1" --id "$2"
code=$?
case $code in
8 | 75) echo "run $2 goes on; the repeated step continues it" >&2 ;;
esac
exit $code
