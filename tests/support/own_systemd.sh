#!/bin/sh
# Debian's systemd as pid 1 of namespaces of its own, for tests of timers; as root:
#   own_systemd.sh FOLDER COMMAND…
# FOLDER is at /srv there, and COMMAND is run as a service; systemd ends with it, and with its exit status in
# FOLDER/status.
#
# A systemd that starts a machine empties /tmp, writes below /var and mounts what /etc/fstab names. So everything that
# it writes is a file system of its own, and it knows no units and no generators but those that are named here.
set -e
if [ "$1" != inside ]; then
	folder=$1
	shift
	group=$(findmnt --noheadings --first-only --types cgroup2 --output TARGET)/stoker-test-$$
	mkdir "$group"
	trap 'sleep 0.1; find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true' EXIT
	(
		sh -c 'echo $PPID' >"$group/cgroup.procs"
		exec unshare --mount --pid --cgroup --uts --ipc --fork --kill-child --propagation private \
			"$0" inside "$folder" "$@"
	)
	exit
fi
folder=$2
shift 2
mount --bind "$folder" /srv
for own in /run /tmp /var /etc/systemd; do
	mount -t tmpfs -o mode=755 tmpfs "$own"
done
mount -t proc proc /proc
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /run/lock /var/lib /var/tmp /etc/systemd/system /run/none
chmod 1777 /tmp /var/tmp
systemd-id128 new >/run/own-id
mount --bind /run/own-id /etc/machine-id
for unit in basic sysinit timers sockets paths slices shutdown umount final exit; do
	cp "/lib/systemd/system/$unit.target" /etc/systemd/system/
done
cp /lib/systemd/system/systemd-exit.service /etc/systemd/system/
printf '[Unit]\nRequires=basic.target test.service\nAfter=basic.target\n' >/etc/systemd/system/default.target
{
	printf '[Unit]\nAfter=basic.target\n[Service]\nType=oneshot\nWorkingDirectory=/srv\n'
	env | sed -n 's/^\(\(STOKER\|[A-Z]*SAN\)_[A-Z_]*\|PATH\)=/&/p' | sed 's/%/%%/g; s/.*/Environment="&"/'
	printf 'Environment=HOME=/root\nExecStart=/bin/sh -c "exec sh /run/command >/srv/out 2>/srv/err"\n'
	printf "ExecStopPost=/bin/sh -c \"echo \$EXIT_STATUS >/srv/status; systemctl --force --force exit\"\\n"
} >/etc/systemd/system/test.service
for word in "$@"; do
	printf "'%s' " "$(printf %s "$word" | sed "s/'/'\\\\''/g")"
done >/run/command
exec env container=other SYSTEMD_UNIT_PATH=/etc/systemd/system SYSTEMD_GENERATOR_PATH=/run/none \
	SYSTEMD_ENVIRONMENT_GENERATOR_PATH=/run/none /lib/systemd/systemd --system --log-target=console --show-status=0
