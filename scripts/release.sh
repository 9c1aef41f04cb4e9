#!/usr/bin/env bash
# Makes all that is released, in dist/: for amd64 and arm64 the programs with libopus inside, as tar.gz and Debian
# package; the image of both architectures, without an engine for containers; what is inside (SBOM), licences, checksums.
# It runs as root on Debian 12, installs the packages that it needs and takes about twenty minutes on two cores;
# docs/install.md says what to do with what it makes.
#
# VERSION   version of the release; default: that of internal/version
# ARCHES    architectures: "amd64 arm64" by default
# TWICE     1 (default): everything is compiled again in another folder with an empty cache, and must come out byte by
#           byte the same; 0: not
# CHECK     1 (default): what was made is installed and run (scripts/smoke.sh); 0: not
# MAINTAINER  whom the Debian package names, as NAME <ADDRESS>
# SOURCE_DATE_EPOCH  time of all files; default: that of the last commit
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top"
cache=$top/.cache/release
. scripts/debian.sh

# Newer symbols of glibc than these are not in Debian 12 and Ubuntu 22.04.
ceiling=2.34
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2 # the last one whose modules can all be had from Go's proxy
arches=${ARCHES:-amd64 arm64}
version=${VERSION:-$(sed -n 's/^\tnumber *= "\(.*\)"$/\1/p' internal/version/version.go)}
commit=$(git rev-parse HEAD)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export TZ=UTC LC_ALL=C.UTF-8 GOFLAGS= GOWORK=off GOEXPERIMENT=
umask 022
debversion=${version/-/\~}
maintainer=${MAINTAINER:-xiaozhi maintainers <root@localhost>}
out=$top/dist

say() { echo "release: $*"; }
fail() { echo "release: $*" >&2; exit 1; }

[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || fail "\"$version\" is no version such as 1.2.3 or 1.2.3-rc.1"
for arch in $arches; do
	case $arch in amd64 | arm64) ;; *) fail "ARCHES: \"$arch\" is neither amd64 nor arm64" ;; esac
done
[ -z "$(git status --porcelain)" ] || say "what is not committed is not in the release / 未提交的修改不会进入发布"

# opus ARCH DIR: unpacks Debian's libopus and describes it for pkg-config, as an archive that becomes part of the program. Only
# this folder is asked, so that nothing else of the machine gets in.
opus() {
	local arch=$1 dir=$2 lib
	fetch "$arch" "$cache/debs-$arch" libopus-dev
	rm -rf "$dir" && mkdir -p "$dir/pkgconfig"
	dpkg-deb -x "$cache/debs-$arch"/libopus-dev_*.deb "$dir"
	lib=$(ls "$dir"/usr/lib/*/libopus.a)
	cat >"$dir/pkgconfig/opus.pc" <<-PC
		Name: Opus
		Description: Opus, as an archive
		Version: $(dpkg-deb -f "$cache/debs-$arch"/libopus-dev_*.deb Version | sed 's/-[^-]*$//')
		Libs: $lib -lm
		Cflags: -I$dir/usr/include/opus
	PC
}

# compile ARCH BUILT: compiles the programs from BUILT/source to BUILT/ARCH.
compile() {
	local arch=$1 built=$2 cc=gcc experiment=
	[ "$arch" != arm64 ] || [ "$(dpkg --print-architecture)" = arm64 ] || cc=aarch64-linux-gnu-gcc
	[ "$arch" != amd64 ] || [ "$(dpkg --print-architecture)" = amd64 ] || cc=x86_64-linux-gnu-gcc
	[ "$arch" != amd64 ] || experiment=simd
	opus "$arch" "$built/opus-$arch"
	mkdir -p "$built/$arch"
	(cd "$built/source" && env CGO_ENABLED=1 GOOS=linux GOARCH="$arch" GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT=$experiment CC=$cc CGO_CFLAGS="-g -O2" CGO_LDFLAGS="-g -O2" GOFLAGS= GOWORK=off \
		PKG_CONFIG_LIBDIR="$built/opus-$arch/pkgconfig" PKG_CONFIG_PATH= \
		nice -n 10 go build -p "${JOBS:-2}" -trimpath -buildvcs=false -tags nolibopusfile \
		-ldflags "-s -w -buildid= -X xiaozhi/internal/version.number=$version -X xiaozhi/internal/version.commit=$commit" \
		-o "$built/$arch/" ./cmd/xiaozhi ./cmd/xiaozhi-sim)
}

# checkprogram ARCH FILE: says what a program needs of the system, which must be glibc alone, and not a newer one.
checkprogram() {
	local arch=$1 file=$2 needed newest
	needed=$(readelf -dW "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
	for lib in $needed; do
		case $lib in libc.so.6 | libm.so.6 | libresolv.so.2 | ld-linux-x86-64.so.2 | ld-linux-aarch64.so.1) ;; *) fail "${file##*/} of $arch needs $lib: only glibc may be needed" ;; esac
	done
	newest=$(readelf -VW "$file" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -1)
	[ "$(printf '%s\n%s\n' "$newest" $ceiling | sort -V | tail -1)" = $ceiling ] || fail "${file##*/} of $arch needs glibc $newest, which is newer than $ceiling"
	say "${file##*/} for $arch: $(stat -c %s "$file") bytes; needs $needed(GLIBC_$newest)"
}

# programs BUILT: compiles what is committed, from BUILT/source, for all architectures, to BUILT/ARCH.
programs() {
	local built=$1 arch began=$SECONDS
	rm -rf "$built" && mkdir -p "$built/source"
	git archive "$commit" | tar -x -C "$built/source"
	for arch in $arches; do
		compile "$arch" "$built"
		checkprogram "$arch" "$built/$arch/xiaozhi"
		checkprogram "$arch" "$built/$arch/xiaozhi-sim"
	done
	say "compiled in $((SECONDS - began)) s"
}

# documents SOURCE TO: what a person reads beside a program.
documents() {
	mkdir -p "$2/docs"
	cp "$1"/{README.md,README.zh-CN.md,CHANGELOG.md,LICENSE,THIRD_PARTY_NOTICES.md,config.yaml} "$2/"
	cp -r "$1"/docs/*.md "$1/docs/openapi.yaml" "$1/docs/images" "$2/docs/"
	cp -r "$1/deploy" "$2/"
}

# licences BUILT ARCH TO: the licence texts of all that is inside a program.
licences() {
	"$cache/tools/pack" licences -program "$1/$2/xiaozhi" -text "libopus $(opusversion "$1" "$2")=$1/opus-$2/usr/share/doc/libopus-dev/copyright" -to "$3"
}

opusversion() { sed -n 's/^Version: //p' "$1/opus-$2/pkgconfig/opus.pc"; }

# archive BUILT ARCH TO: the tar.gz of one architecture. Its folder looks like that of the source after `make build`, so that
# all documents speak of bin/xiaozhi in both.
archive() {
	local built=$1 arch=$2 to=$3 name=xiaozhi_${version}_linux_$2 dir=$1/tar
	rm -rf "$dir" && mkdir -p "$dir/$name/bin"
	cp "$built/$arch"/xiaozhi "$built/$arch"/xiaozhi-sim "$dir/$name/bin/"
	documents "$built/source" "$dir/$name"
	licences "$built" "$arch" "$dir/$name/THIRD_PARTY_LICENSES.txt"
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$dir" -c "$name" | gzip -n9 >"$to/$name.tar.gz"
}

# package BUILT ARCH TO: the Debian package of one architecture.
package() {
	local built=$1 arch=$2 to=$3 stage=$1/deb doc
	rm -rf "$stage"
	doc=$stage/usr/share/doc/xiaozhi
	mkdir -p "$stage/usr/bin" "$doc" "$stage/usr/share/man/man1" "$stage/usr/share/lintian/overrides" "$stage/lib/systemd/system" "$stage/etc/xiaozhi"
	cp "$built/$arch"/xiaozhi "$built/$arch"/xiaozhi-sim "$stage/usr/bin/"
	cp "$built"/source/{README.md,README.zh-CN.md,THIRD_PARTY_NOTICES.md} "$built"/source/docs/*.md "$built/source/docs/openapi.yaml" "$doc/"
	gzip -n9 <"$built/source/CHANGELOG.md" >"$doc/NEWS.md.gz"
	printf 'xiaozhi (%s) unstable; urgency=medium\n\n  * NEWS.md.gz says what is new.\n\n -- %s  %s\n' "$debversion" "$maintainer" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -n9 >"$doc/changelog.gz"
	licences "$built" "$arch" "$built/licences.txt"
	{
		printf 'xiaozhi is under this licence:\n\n'
		cat "$built/source/LICENSE"
		printf '\n'
		cat "$built/licences.txt"
	} >"$doc/copyright"
	gzip -n9 <"$built/source/deploy/debian/xiaozhi.1" >"$stage/usr/share/man/man1/xiaozhi.1.gz"
	cp "$built/source/deploy/debian/lintian" "$stage/usr/share/lintian/overrides/xiaozhi"
	cp "$built/source/deploy/debian/xiaozhi.service" "$stage/lib/systemd/system/"
	cp "$built/source/deploy/debian/environment" "$built/source/config.yaml" "$stage/etc/xiaozhi/"
	(cd "$built/source" && ARCH=$arch VERSION=$version STAGE=$stage MAINTAINER=$maintainer "$cache/tools/nfpm" package -f deploy/debian/nfpm.yaml -p deb -t "$to/xiaozhi_${debversion}_$arch.deb" >/dev/null)
}

# The engines of the image, beside the C library: what hears and speaks English and says other languages without any service.
engines="libpocketsphinx3 pocketsphinx-en-us libflite1 espeak-ng"

# system ARCH TO: the files of the Debian packages of an image. Nothing runs when they are unpacked: what their scripts
# would do and the server needs is done here.
system() {
	local arch=$1 to=$2 deb name triplet
	fetch_all "$arch" "$cache/image-$arch" libc6 $engines
	rm -rf "$to" && mkdir -p "$to/var/lib/dpkg/status.d"
	for deb in "$cache/image-$arch"/*.deb; do
		dpkg-deb -x "$deb" "$to"
		name=$(dpkg-deb -f "$deb" Package)
		dpkg-deb -f "$deb" >"$to/var/lib/dpkg/status.d/$name"
	done
	case $arch in amd64) triplet=x86_64-linux-gnu ;; arm64) triplet=aarch64-linux-gnu ;; esac
	for name in blas lapack; do
		[ ! -e "$to/usr/lib/$triplet/$name/lib$name.so.3" ] || ln -s "$name/lib$name.so.3" "$to/usr/lib/$triplet/lib$name.so.3"
	done
	find "$to/usr/share/doc" -mindepth 2 ! -name copyright ! -type d -delete
	find "$to/usr/share/doc" -type d -empty -delete
	rm -rf "$to"/usr/share/{man,locale,info,lintian,bug,doc-base} "$to"/usr/lib/*/gconv "$to"/var/cache
	mkdir -p "$to/etc" "$to/tmp"
	chmod 1777 "$to/tmp"
	install -d -m 0700 -o 65532 -g 65532 "$to/data"
	printf 'root:x:0:0:root:/root:/sbin/nologin\nxiaozhi:x:65532:65532:xiaozhi:/data:/sbin/nologin\n' >"$to/etc/passwd"
	printf 'root:x:0:\nxiaozhi:x:65532:\n' >"$to/etc/group"
	printf 'hosts: files dns\n' >"$to/etc/nsswitch.conf"
}

# images BUILT TO: the images of all architectures.
images() {
	local built=$1 to=$2 arch layers=() own
	for arch in $arches; do
		system "$arch" "$built/system-$arch"
		own=$built/program-$arch
		rm -rf "$own" && mkdir -p "$own/usr/bin" "$own/usr/share/doc/xiaozhi" "$own/etc/xiaozhi"
		cp "$built/$arch"/xiaozhi "$built/$arch"/xiaozhi-sim "$own/usr/bin/"
		cp "$built/source/config.yaml" "$own/etc/xiaozhi/"
		cp "$built/source/LICENSE" "$built/source/THIRD_PARTY_NOTICES.md" "$own/usr/share/doc/xiaozhi/"
		licences "$built" "$arch" "$own/usr/share/doc/xiaozhi/THIRD_PARTY_LICENSES.txt"
		layers+=(-layer "$arch=$built/system-$arch" -layer "$arch=$own")
	done
	"$cache/tools/pack" image -version "$version" -commit "$commit" "${layers[@]}" -oci "$to/xiaozhi_${version}_oci.tar" -docker "$to/xiaozhi_${version}_docker_ARCH.tar"
}

# app BUILT TO: the folder of the app for Home Assistant, with the packages that it installs.
app() {
	local dir=$1/app
	rm -rf "$dir" && mkdir -p "$dir"
	cp -r "$1/source/deploy/homeassistant/xiaozhi" "$dir/"
	cp "$2"/xiaozhi_*.deb "$dir/xiaozhi/"
	tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$dir" -c xiaozhi | gzip -n6 >"$2/xiaozhi_${version}_homeassistant.tar.gz"
}

# inside BUILT ARCH TO: what is inside the program, and what is inside the image (SBOM).
inside() {
	local built=$1 arch=$2 to=$3 deb debs=()
	for deb in "$cache/image-$arch"/*.deb; do debs+=(-deb "$deb"); done
	"$cache/tools/pack" sbom -program "$built/$arch/xiaozhi" -version "$version" -library "libopus=$(opusversion "$built" "$arch")" -to "$to/xiaozhi_${version}_linux_$arch.cdx.json"
	"$cache/tools/pack" sbom -program "$built/$arch/xiaozhi" -version "$version" -library "libopus=$(opusversion "$built" "$arch")" "${debs[@]}" -to "$to/xiaozhi_${version}_image_$arch.cdx.json"
}

# files BUILT TO: makes all that is released of compiled programs.
files() {
	local built=$1 to=$2 arch began=$SECONDS
	rm -rf "$to" && mkdir -p "$to"
	images "$built" "$to"
	for arch in $arches; do
		archive "$built" "$arch" "$to"
		package "$built" "$arch" "$to"
		inside "$built" "$arch" "$to"
	done
	app "$built" "$to"
	(cd "$to" && sha256sum -- * >../SHA256SUMS.new && mv ../SHA256SUMS.new SHA256SUMS)
	say "packed in $((SECONDS - began)) s"
}

# again makes everything a second time, in another folder and with an empty cache of the compiler, and compares.
again() {
	local elsewhere
	elsewhere=$(mktemp -d "${TMPDIR:-/tmp}/xiaozhi-again-XXXXXX")
	chmod 0755 "$elsewhere"
	GOCACHE=$elsewhere/cache programs "$elsewhere/built"
	files "$elsewhere/built" "$elsewhere/dist"
	if ! diff "$out/SHA256SUMS" "$elsewhere/dist/SHA256SUMS" >&2; then
		! command -v diffoscope >/dev/null || diffoscope --max-report-size 20000 "$out" "$elsewhere/dist" >&2 || true
		fail "two builds differ; the second is in $elsewhere / 两次构建的结果不同"
	fi
	chmod -R u+w "$elsewhere" && rm -rf "$elsewhere"
	say "two builds are equal / 两次构建结果相同"
}

# tools makes the programs that pack.
tools() {
	mkdir -p "$cache/tools"
	(cd scripts/pack && go vet . && go test ./... && go build -o "$cache/tools/pack" .)
	[ "$(cat "$cache/tools/nfpm.version" 2>/dev/null || true)" = "$nfpm" ] || {
		GOBIN=$cache/tools go install "$nfpm"
		echo "$nfpm" >"$cache/tools/nfpm.version"
	}
}

began=$SECONDS
scripts/packages.sh release
mkdir -p "$cache"
say "version $version of $commit"
tools
programs "$cache/built"
files "$cache/built" "$out"
[ "${TWICE:-1}" = 0 ] || again
[ "${CHECK:-1}" = 0 ] || scripts/smoke.sh
rm -rf "$cache/built" # what looks for Go files must not find the source there
(cd "$out" && ls -l | awk 'NF > 8 {printf "%12d  %s\n", $5, $9}')
say "all is in dist/ after $((SECONDS - began)) s / 全部在 dist/"
