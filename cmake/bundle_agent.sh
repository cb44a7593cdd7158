#!/bin/sh
# Assembles the agent directory: stoker-node, the shared libraries it needs and
# its own loader, so that it runs in an image that has none of them.
set -eu

node=$1
dir=$2
rm -rf "$dir"
mkdir -p "$dir/lib"
cp "$node" "$dir/stoker-node"
# ldd prints "name => /path (address)" for libraries and "/path (address)" for
# the loader.
ldd "$node" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\/.*ld-linux/ { print $1 }' |
while read -r library; do
	case $library in
	*ld-linux*) cp -L "$library" "$dir/lib/loader" ;;
	*) cp -L "$library" "$dir/lib/" ;;
	esac
done
chmod -R u+rwX,go= "$dir"
