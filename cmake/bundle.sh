#!/bin/sh
# Makes in build/ an archive and a wheel for Python's installers, which run on any Linux of this kind
# of machine, and the checksums of both. They hold what `cmake --install` installs, the loader and
# every library; cmake/install.cmake says where. The same sources and libraries give the same bytes,
# wherever and whenever.
#
# usage: bundle.sh BUILD VERSION MACHINE EPOCH CMAKE LAUNCHER LIBGIT2
set -eu
umask 022
export LC_ALL=C TZ=UTC
here=${0%/*}
# shellcheck source=cmake/libraries.sh
. "$here/libraries.sh"

build=$1 version=$2 machine=$3 epoch=$4 cmake=$5 launcher=$6 git=$7
out=$here/../build
name=stoker-$version-linux-$machine
work=$build/bundle
root=$work/root/$name
private=$root/lib/stoker
papers=$root/share/doc/stoker

# pack FORMAT FOLDER… [TEST…]: prints an archive of the folders, or of what find's TESTs leave of them.
# Times, owners and order come from a list, because those of the files differ from build to build.
pack() {
	format=$1
	shift
	{
		echo '#mtree'
		find "$@" -printf "%p type=%y mode=%m time=$epoch.0 uid=0 gid=0\n" | sed 's/ type=d / type=dir /; s/ type=f / type=file /' | sort
	} | bsdtar --create --file - --format "$format" @-
}

# digest FILE: prints its checksum as a wheel's RECORD has it.
digest() {
	sha256sum "$1" | cut -c 1-64 | tr a-f A-F | basenc --base16 --decode | basenc --base64url | tr -d =
}

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$root" --strip >/dev/null
"$cmake" --install "$build" --prefix "$root" --component bundle >/dev/null

# ---- programs and libraries ----

mkdir -p "$private/programs" "$private/lib"
mv "$root/bin/stoker" "$private/stoker-post" "$private/stoker-derive" "$private/programs/"
# A build id depends on the compiler's command line, and leads to debugging information that is not in
# the bundle.
strip --remove-section=.note.gnu.build-id "$private"/programs/* "$private/agent/stoker-node"
cp "$launcher" "$root/bin/stoker"
cp "$launcher" "$private/stoker-post"
cp "$launcher" "$private/stoker-derive"
cp -L "$git" "$private/lib/"
needed "$private"/programs/* "$git" | while read -r library; do
	[ -e "$private/agent/lib/${library##*/}" ] || cp -L "$library" "$private/lib/"
done
rm -f "$private"/lib/ld-linux* # the agent has it
# Mozilla's list alone: this machine may trust more, and whoever uses the bundle has not agreed to that.
if ls /usr/share/ca-certificates/mozilla/*.crt >/dev/null 2>&1; then
	cat /usr/share/ca-certificates/mozilla/*.crt >"$private/agent/lib/ca-certificates.crt"
fi
chmod 755 "$root/bin/stoker" "$private/stoker-post" "$private/stoker-derive" "$private"/programs/* "$private/agent/lib/loader"
chmod 644 "$private"/lib/*

"$here/licences.sh" "$work/licences" "$private"/programs/* -- "$git"
cp -R "$work/licences/." "$papers/licences/"
if [ -e "$papers/licences/unknown" ]; then
	echo "bundle: error: this system does not have the licences of these files or packages:" >&2
	cat "$papers/licences/unknown" >&2
	exit 1
fi

# ---- the archive ----

rm -f "$out"/stoker-*-linux-*.tar.gz "$out"/stoker-*.whl "$out/SHA256SUMS"
(cd "$work/root" && pack ustar "$name") >"$work/$name.tar"
gzip -9n <"$work/$name.tar" >"$out/$name.tar.gz"

# ---- the wheel: the same files where a Python environment has them ----

tag=py3-none-manylinux2014_$machine.manylinux_2_17_$machine.musllinux_1_1_$machine
wheel=$work/wheel
about=$wheel/stoker-$version.dist-info
data=$wheel/stoker-$version.data
mkdir -p "$about" "$data/scripts"
cp -R "$root" "$data/data"
mv "$data/data/bin/stoker" "$data/scripts/"
rmdir "$data/data/bin"
{
	echo 'Wheel-Version: 1.0'
	echo "Generator: stoker ($version)"
	echo 'Root-Is-Purelib: false'
	for platform in manylinux2014 manylinux_2_17 musllinux_1_1; do
		echo "Tag: py3-none-${platform}_$machine"
	done
} >"$about/WHEEL"
{
	echo 'Metadata-Version: 2.1'
	echo 'Name: stoker'
	echo "Version: $version"
	echo 'Summary: carries training jobs through precompile, proof and training'
	[ ! -e "$papers/LICENSE" ] || echo 'License-File: LICENSE'
	echo 'Description-Content-Type: text/markdown'
	echo
	cat "$papers/README.md"
} >"$about/METADATA"
[ ! -e "$papers/LICENSE" ] || cp "$papers/LICENSE" "$about/"
(
	cd "$wheel"
	find . -type f | sed 's/^..//' | sort | while read -r file; do
		echo "$file,sha256=$(digest "$file"),$(stat --format %s "$file")"
	done >"$work/record"
	echo "stoker-$version.dist-info/RECORD,," >>"$work/record"
	mv "$work/record" "$about/RECORD"
	pack zip stoker-* -type f >"$out/stoker-$version-$tag.whl"
)

cd "$out"
sha256sum "$name.tar.gz" "stoker-$version-$tag.whl" >SHA256SUMS
