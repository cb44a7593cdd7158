# shellcheck shell=sh
# Shared by the scripts that make bundles; to be sourced.

# needed FILE…: the paths of the shared libraries that the files need, and of the loader.
needed() {
	for needing; do
		# ldd prints "name => /path (address)" for libraries and "/path (address)" for
		# the loader.
		ldd "$needing" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\/.*ld-linux/ { print $1 }'
	done | LC_ALL=C sort -u
}
