# shellcheck shell=bash
# What ./quickstart and ./test ask of the machine, in one place: which tools and
# libraries must be there, how to get those that are missing, and how to make a
# Python virtual environment. What is there already is used as it is; when
# nothing is missing, nothing is installed and the network is not touched.
#
# To be sourced by bash, in the root of the repository.

say() {
	printf '==> %s\n' "$*"
}

# fail MESSAGE HINT: a clear word, and the exit code of "the environment refuses".
fail() {
	printf '%s: error: %s\n' "${0##*/}" "$1" >&2
	[ $# -lt 2 ] || printf '  hint: %s\n' "$2" >&2
	exit 4
}

have() {
	command -v "$1" >/dev/null 2>&1
}

library() {
	have pkg-config && pkg-config --exists "$1"
}

# A Python that can make virtual environments: the one in PATH, which may be a
# version manager's shim that leads nowhere, or else the system's own.
find_python() {
	local candidate
	for candidate in python3 /usr/bin/python3; do
		if "$candidate" -c 'import ensurepip, sys, venv
sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
			echo "$candidate"
			return 0
		fi
	done
	return 1
}

# A clang that can link its sanitizers' and its fuzzer's run time.
can_fuzz() {
	echo 'int LLVMFuzzerTestOneInput(const void *p) { return !p; }' |
		"$1" -fsanitize=fuzzer,address,undefined -x c - -o /dev/null >/dev/null 2>&1
}

# A busybox that runs in a root that holds nothing else.
can_run_bare() {
	have "$1" && ! readelf --program-headers "$(command -v "$1")" 2>/dev/null | grep -q INTERP
}

# One need a line: the Debian package, then the command that finds out whether
# what it brings is there, whoever installed it.
# shellcheck disable=SC2034 # for whoever sources this
build_needs='
gcc                 have gcc
libc6-dev           test -e /usr/include/stdio.h
cmake               have cmake
ninja-build         have ninja
pkg-config          have pkg-config
ca-certificates     test -s /etc/ssl/certs/ca-certificates.crt
libjansson-dev      library jansson
libyaml-dev         library yaml-0.1
libsqlite3-dev      library sqlite3
libpcre2-dev        library libpcre2-8
libarchive-dev      library libarchive
libgit2-dev         library libgit2
libssl-dev          library libcrypto
zlib1g-dev          library zlib
libdeflate-dev      library libdeflate
libcurl4-openssl-dev library libcurl
libexpat1-dev       library expat
libjq-dev           test -e /usr/include/jq.h
libjs-dygraphs      test -e /usr/share/javascript/dygraphs/dygraph.min.js
python3             have python3
python3-venv        find_python
'
# shellcheck disable=SC2034
test_needs='
git                 have git
clang               have clang
libclang-rt-14-dev  can_fuzz clang
clang-format        have clang-format
clang-tidy          have clang-tidy
cppcheck            have cppcheck
shellcheck          have shellcheck
libcmocka-dev       library cmocka
bindfs              have bindfs
libfuse3-dev        library fuse3
e2fsprogs           test -x /usr/sbin/mkfs.ext4
strace              have strace
busybox-static      can_run_bare busybox
tmux                have tmux
man-db              have man
groff-base          have groff
mandoc              have mandoc
zsh                 have zsh
fish                have fish
dpkg-dev            have dpkg-shlibdeps
libarchive-tools    have bsdtar
musl-tools          have musl-gcc
lintian             have lintian
util-linux          have setpriv
chromium            have chromium
tidy                have tidy
tzdata              test -e /usr/share/zoneinfo/Europe/Berlin
cron                test -x /usr/sbin/cron
systemd             test -x /lib/systemd/systemd
'

# Packages of the given list that bring something this machine lacks.
missing() {
	local package check
	while read -r package check; do
		[ -n "$package" ] || continue
		$check >/dev/null 2>&1 || echo "$package"
	done <<<"$1"
}

# as_root COMMAND…: as we are if we are root, with sudo if we may.
as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif [ -t 0 ] && [ -t 2 ]; then
		sudo "$@"
	else
		sudo -n "$@"
	fi
}

may_install() {
	have apt-get || return 1
	[ "$(id -u)" = 0 ] && return 0
	have sudo || return 1
	if [ -t 0 ] && [ -t 2 ]; then
		sudo -v
	else
		sudo -n true 2>/dev/null
	fi
}

# ensure_packages NEEDS: install what is missing, or say what a person must.
ensure_packages() {
	local packages
	packages=$(missing "$1" | tr '\n' ' ')
	packages=${packages% }
	if [ -z "$packages" ]; then
		say "packages: all there"
		return 0
	fi
	say "packages: installing $packages"
	if ! may_install; then
		fail "these packages are missing and this user may not install them: $packages" \
			"let an administrator run 'apt-get install $packages', then try again"
	fi
	# Lists that cannot be refreshed may still be good enough: the
	# installation decides.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 \
		-o DPkg::Lock::Timeout=120 update ||
		say "packages: the lists could not be refreshed, going on with those at hand"
	# shellcheck disable=SC2086 # a list of words
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Acquire::Retries=3 \
		-o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 \
		install -y --no-install-recommends $packages >/dev/null ||
		fail "apt-get could not install: $packages" \
			"run 'apt-get install $packages' to see why, then try again"
	packages=$(missing "$1" | tr '\n' ' ')
	[ -z "${packages% }" ] ||
		fail "installed, and still not usable: ${packages% }" \
			"check that another version in PATH does not hide what the package brings"
}

# ensure_venv [--system-site-packages] DIRECTORY REQUIREMENTS…: a virtual environment that
# holds exactly what the files pin. The stamp says for which files it was made. With the
# option, what the system's Python has in the pinned version is used from there.
ensure_venv() {
	local flags=() dir python want file files=()
	if [ "$1" = --system-site-packages ]; then
		flags=("$1")
		shift
	fi
	dir=$1
	shift
	want=$(cat "$@" | sha256sum)
	if [ "$(cat "$dir/.made-for" 2>/dev/null)" = "$want" ] && "$dir/bin/python" -c '' 2>/dev/null; then
		say "python: $dir is up to date"
		return 0
	fi
	python=$(find_python) ||
		fail "no Python 3.11 or newer that can make virtual environments" \
			"install the package python3-venv"
	say "python: filling $dir from $* (a download, once)"
	for file in "$@"; do
		files+=(-r "$file")
	done
	"$dir/bin/python" -m pip --version >/dev/null 2>&1 || "$python" -m venv --clear "${flags[@]}" "$dir" ||
		fail "could not make a virtual environment in $dir" "install the package python3-venv"
	"$dir/bin/python" -m pip install --quiet --no-input --disable-pip-version-check "${files[@]}" ||
		fail "pip could not install what $* pins" \
			"check the network and the package index pip is set up for, then try again"
	echo "$want" >"$dir/.made-for"
}

# build PRESET [TARGET…]: configure, then build what changed. A build folder that
# came along from elsewhere is begun anew.
build() {
	local preset=$1 home
	shift
	say "build: $preset"
	home=$(sed -n 's/^CMAKE_HOME_DIRECTORY:INTERNAL=//p' "build/$preset/CMakeCache.txt" 2>/dev/null) || true
	[ "${home:-$PWD}" = "$PWD" ] || rm -rf "build/$preset"
	quietly cmake --preset "$preset" &&
		quietly cmake --build --preset "$preset" ${1:+--target "$@"}
}

# Show what a command says only if it fails.
quietly() {
	local log status=0
	log=$(mktemp)
	"$@" >"$log" 2>&1 || status=$?
	[ "$status" = 0 ] || cat "$log" >&2
	rm -f "$log"
	return "$status"
}
