#!/bin/sh
# Gathers the papers of the Debian packages that the files of a bundle come from: copyright
# and licence of each package in FOLDER/PACKAGE, and in FOLDER/common-licenses the texts that
# these papers point to and that only a Debian system has. A file of no package, and a package without
# papers, is listed in FOLDER/unknown. The libraries that a FILE or a PROGRAM of stoker needs count as
# files.
#
# usage: licences.sh FOLDER [PROGRAM…] -- FILE…
set -eu
# shellcheck source=cmake/libraries.sh
. "${0%/*}/libraries.sh"

folder=$1
shift
rm -rf "$folder"
mkdir -p "$folder/common-licenses"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
: >"$copy/texts"

# A package may name a file by /lib though that is a link to /usr/lib, and the other way round.
names_of() {
	for name in "$1" "$(readlink -f "$1")"; do
		printf '%s\n' "$name" "${name#/usr}" "/usr${name#/usr}"
	done
}

{
	own=yes
	for file; do
		[ "$file" != -- ] || { own=no && continue; }
		[ "$own" = yes ] || printf '%s\n' "$file"
		! ldd "$file" >/dev/null 2>&1 || needed "$file"
	done
} | LC_ALL=C sort -u >"$copy/files"
while read -r file; do
	names_of "$file"
done <"$copy/files" | xargs dpkg -S 2>/dev/null | grep -v '^diversion ' >"$copy/owners" || :
sed 's/^[^ ]* //' "$copy/owners" >"$copy/owned"
while read -r file; do
	names_of "$file" | grep -qxFf - "$copy/owned" || echo "$file" >>"$folder/unknown"
done <"$copy/files"
sed 's/[:,].*//' "$copy/owners" | LC_ALL=C sort -u >"$copy/packages"
while read -r package; do
	paper=/usr/share/doc/$package/copyright
	[ -e "$paper" ] || { echo "$package" >>"$folder/unknown" && continue; }
	cp -L "$paper" "$folder/$package"
	chmod 644 "$folder/$package"
	grep -o '/usr/share/common-licenses/[A-Za-z0-9.+-]*[A-Za-z0-9]' "$paper" >>"$copy/texts" || :
done <"$copy/packages"
LC_ALL=C sort -u "$copy/texts" >"$copy/common"
while read -r text; do
	[ ! -f "$text" ] || cp -L "$text" "$folder/common-licenses/"
done <"$copy/common"
