# Brings the agent into a container by a link.
# $1: the rank; of the environment STOKER_LINK (the URL; it holds a signature), STOKER_LINK_ENDS,
# STOKER_LINK_SHA256, STOKER_LINK_FROM (the same as s3://…, for who has a role).
# For sh as small as there is, with mkdir, tar or python3, sha256sum, python3 or openssl.
# Lines that begin so do not travel.
# The image's own entry point may have a shell read the words of the command anew: then this
# is not $0's script yet, and the same is run as it was meant (see agent_delivery.h).
:
[ "${1-}" != sh ] || exec "$@"
set -u
link=${STOKER_LINK-} ends=${STOKER_LINK_ENDS-} sum=${STOKER_LINK_SHA256-} from=${STOKER_LINK_FROM-}
unset STOKER_LINK STOKER_LINK_ENDS STOKER_LINK_SHA256 STOKER_LINK_FROM
complain() {
	echo "stoker: $1" >&2
	exit "$2"
}
has() {
	command -v "$1" >/dev/null 2>&1
}
tried=""
trouble() {
	tried="$tried${tried:+; }$1"
}
# A fresh folder that is nobody else's.
make_fresh() {
	number=0
	while [ $number -lt 20 ]; do
		dir=$1/stoker-agent.$$.$number
		(umask 077 && mkdir "$dir") 2>/dev/null && return 0
		number=$((number + 1))
	done
	return 1
}
# What S3 answers instead of the archive: a little XML. An expired link is known by it.
read_refusal() {
	said="" line=""
	while IFS= read -r line || [ -n "$line" ]; do
		said="$said$line"
		[ ${#said} -lt 4000 ] || break
	done <"$file"
	case $said in
	*"Request has expired"* | *ExpiredToken* | *"token has expired"*)
		complain "the link to the agent has expired: the job waited longer in the queue than the link was good for (until ${ends:-its credentials ended})" 75
		;;
	*"<Code>"*)
		why=${said#*<Code>}
		why=${why%%</Code>*}
		;;
	*) why="" ;;
	esac
}
by_curl() {
	has curl || return 1
	# On stdin, so that nobody sees it among the processes.
	code=$(echo "url = \"$link\"" | curl -sS -K - --connect-timeout 20 --retry 5 --retry-delay 2 -o "$file" -w "%{http_code}") || {
		trouble "curl failed ($?)"
		return 1
	}
	[ "$code" != 200 ] || return 0
	read_refusal
	trouble "curl was told $code $why"
	return 1
}
by_python() {
	has python3 || return 1
	STOKER_LINK=$link python3 -c '
import os, shutil, sys, time, urllib.error, urllib.request
for left in (4, 3, 2, 1, 0):
    try:
        with urllib.request.urlopen(os.environ["STOKER_LINK"], timeout=60) as reply, open(sys.argv[1], "wb") as out:
            shutil.copyfileobj(reply, out)
        sys.exit(0)
    except urllib.error.HTTPError as error:
        if error.code < 500 or not left:
            with open(sys.argv[1], "wb") as out:
                out.write(error.read(4000))
            sys.exit(22)
    except OSError as error:
        if not left:
            sys.exit("python3: %s" % getattr(error, "reason", error))
    time.sleep(2)
' "$file"
	code=$?
	[ $code -ne 0 ] || return 0
	why=""
	[ $code -ne 22 ] || read_refusal
	trouble "python3 failed${why:+: $why}"
	return 1
}
by_aws() {
	has aws && [ -n "$from" ] || return 1
	aws s3 cp --only-show-errors "$from" "$file" >&2 && return 0
	trouble "aws failed"
	return 1
}
find_sum() {
	if has sha256sum; then
		found=$(sha256sum "$file")
	elif has python3; then
		found=$(python3 -c 'import hashlib, sys; print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())' "$file")
	elif has openssl; then
		found=$(openssl dgst -sha256 -r "$file")
	else
		complain "cannot check the agent: the image has neither sha256sum nor python3 nor openssl" 70
	fi
	found=${found%% *}
}
unpack() {
	has tar && tar -xzf "$file" -C "$dir" && return 0
	has python3 && python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$file" "$dir"
}
make_fresh "${TMPDIR:-/tmp}" || make_fresh /tmp || make_fresh /var/tmp || make_fresh /dev/shm ||
	complain "cannot make a folder for the agent in ${TMPDIR:-/tmp}, /tmp, /var/tmp or /dev/shm" 70
file=$dir/agent.tar.gz
by_curl || by_python || by_aws || {
	[ -n "$tried" ] || complain "the agent cannot be fetched: the image has neither curl nor python3 nor aws; name an image that holds it in batch.helper_image, or where this one has it in batch.agent" 127
	complain "the agent cannot be fetched: $tried" 75
}
find_sum
[ "$found" = "$sum" ] || complain "the agent that came is not the one that was sent: SHA-256 $found instead of $sum" 70
unpack || complain "the agent cannot be unpacked: the image has neither a tar that knows gzip nor python3" 127
rm -f "$file" 2>/dev/null
exec sh "$dir/start" - "$1"
