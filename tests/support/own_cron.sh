#!/bin/sh
# Debian's cron with a spool of its own, for tests of crontabs; as root:
#   own_cron.sh COMMAND…
# cron runs in namespaces of its own, and ends with COMMAND. The machine's spool, its /etc/cron.d and /run are not seen.
set -e
if [ "$1" != inside ]; then
	exec unshare --mount --pid --fork --kill-child --propagation private "$0" inside "$@"
fi
shift
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /run
mount -t tmpfs -o mode=755 tmpfs /var/spool/cron
mkdir -m 1730 /var/spool/cron/crontabs
mount -t tmpfs -o mode=755 tmpfs /etc/cron.d
: >/run/own-crontab
mount --bind /run/own-crontab /etc/crontab
cron -f &
"$@"
