# shellcheck shell=bash
# Functions for scripts that need packages of Debian 12 without installing them; to be sourced.

suite=bookworm

# mirror prints the first Debian archive among this machine's sources, else Debian's own. MIRROR overrides it.
mirror() {
	local found=${MIRROR:-}
	[ -n "$found" ] || found=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
		sed -n -e 's/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\/debian\/\{0,1\}\) .*/\2/p' -e 's/^URIs: *\([^ ]*\/debian\/\{0,1\}\)\( .*\)\{0,1\}$/\1/p' | sed -n 1p)
	echo "${found:-http://deb.debian.org/debian}"
}

# security_mirror prints the archive of security updates beside it.
security_mirror() {
	local found
	found=$({ cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null || true; } |
		sed -n -e 's/^deb \(\[[^]]*\] *\)\{0,1\}\([^ ]*\/debian-security\/\{0,1\}\) .*/\2/p' -e 's/^URIs: *\([^ ]*\/debian-security\/\{0,1\}\)\( .*\)\{0,1\}$/\1/p' | sed -n 1p)
	echo "${found:-http://deb.debian.org/debian-security}"
}

# private_apt ARCH ARGS...: apt-get for an architecture, with lists and a state of its own below $cache, where nothing is
# installed. What it downloads lies in the working folder.
private_apt() {
	local arch=$1 dir=$cache/apt-$1
	shift
	local options=(-qq -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State=$dir" -o "Dir::State::status=$dir/status" -o "Dir::State::lists=$dir/lists"
		-o "Dir::Cache=$dir/cache" -o "Dir::Etc=$dir/etc" -o "Dir::Etc::sourcelist=$dir/etc/sources.list" -o "APT::Sandbox::User=root" -o "Debug::NoLocking=true")
	if [ ! -e "$dir/ready" ]; then
		mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/etc/preferences.d" "$dir/etc/apt.conf.d"
		: >"$dir/status"
		local signed="[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
		printf 'deb %s %s %s main\n' "$signed" "$(mirror)" $suite "$signed" "$(mirror)" $suite-updates "$signed" "$(security_mirror)" $suite-security >"$dir/etc/sources.list"
		apt-get "${options[@]}" update
		touch "$dir/ready"
	fi
	apt-get "${options[@]}" "$@"
}

# fetch ARCH FOLDER PACKAGE...: downloads just these packages into a folder, unless they are there.
fetch() {
	local arch=$1 to=$2 package
	shift 2
	mkdir -p "$to"
	for package in "$@"; do
		[ -n "$(compgen -G "$to/${package}_*.deb")" ] || (cd "$to" && private_apt "$arch" download "$package")
	done
}

# fetch_all ARCH FOLDER PACKAGE...: downloads packages and all that they depend on into a folder.
fetch_all() {
	local arch=$1 to=$2
	shift 2
	[ ! -e "$to/complete" ] || return 0
	rm -rf "$to" && mkdir -p "$to/partial"
	private_apt "$arch" -o "Dir::Cache::archives=$to" -y --no-install-recommends --download-only install "$@" >/dev/null
	rm -rf "$to/partial" "$to/lock"
	touch "$to/complete"
}
