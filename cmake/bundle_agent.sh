#!/bin/sh
# Assembles the agent directory: stoker-node, the shared libraries it needs, those
# that it loads while it runs, its own loader and the certificates that servers are
# checked against, so that it runs in an image that has none of them.
#
# usage: bundle_agent.sh FOLDER CERTIFICATES START STOKER-NODE [LIBRARY…]
set -eu

# shellcheck source=cmake/libraries.sh
. "${0%/*}/libraries.sh"

dir=$1
certificates=$2
start=$3
node=$4
shift 3 # what remains are the files to make run
rm -rf "$dir"
mkdir -p "$dir/lib"
cp "$node" "$dir/stoker-node"
cp "$start" "$dir/start"
cp -L "$certificates" "$dir/lib/ca-certificates.crt"
for file; do
	[ "$file" = "$node" ] || cp -L "$file" "$dir/lib/"
done
needed "$@" | while read -r library; do
	case $library in
	*ld-linux*) cp -L "$library" "$dir/lib/loader" ;;
	*) cp -L "$library" "$dir/lib/" ;;
	esac
done
chmod -R u+rwX,go= "$dir"
