#!/usr/bin/env bash
# Makes the files of a release in dist/, as `make release` does. The same commit and the same versions of Go, npm, tar,
# gzip and zip give the same bytes, wherever and whenever it runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packager=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0
lister=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

fail() { echo "release: $*" >&2; exit 1; }

for tool in go node npm zip jq; do command -v "$tool" >/dev/null || fail "$tool is missing"; done
[[ -z $(git status --porcelain) ]] || fail "commit first: a release is made of a commit"
VERSION=$(sed -n 's/^const version = "\(.*\)"$/\1/p' cmd/nexus/version.go)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export VERSION SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C GOFLAGS= GOWORK=off
umask 022
rm -rf dist
mkdir -p dist/bin dist/files dist/npm dist/stage

export GOBIN=$PWD/bin
go install "$packager"
go install "$lister"

for system in darwin linux windows; do
	for machine in amd64 arm64; do
		program=nexus
		[[ $system != windows ]] || program=nexus.exe
		GOOS=$system GOARCH=$machine make -s build BINARY="dist/bin/${system}_$machine/$program"
	done
done
nexus=dist/bin/$(go env GOHOSTOS)_$(go env GOHOSTARCH)/nexus
[[ $($nexus version) == "nexus $VERSION (commit $(git rev-parse HEAD), "* ]] || fail "got $($nexus version)"

# What the program itself writes for packages.
$nexus man dist/files/man
mkdir dist/files/completions
for file in bash:nexus zsh:_nexus fish:nexus.fish; do
	$nexus completion "${file%:*}" >"dist/files/completions/${file#*:}"
done
$nexus config init dist/files/config >/dev/null
sed -i 's|^# state: ""|state: /var/lib/agenticnexus|' dist/files/config/settings.yaml
grep -q '^state: ' dist/files/config/settings.yaml || fail "the settings have no line for the state folder"

# archive packs the folder dist/stage/NAME: archive NAME FILE
archive() {
	find "dist/stage/$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
	case $2 in
	*.zip) (cd dist/stage && find "$1" -type f | sort | zip -qX9 -@ "../$2") ;;
	*) tar -C dist/stage --sort=name --owner=0 --group=0 --numeric-owner --format=ustar -c "$1" | gzip -9n >"dist/$2" ;;
	esac
}

for folder in dist/bin/*; do
	platform=${folder#dist/bin/}
	name=agenticnexus_${VERSION}_$platform
	mkdir "dist/stage/$name"
	cp -r "$folder"/nexus* LICENSE README.md CHANGELOG.md dist/files/man dist/files/completions "dist/stage/$name/"
	case $platform in
	windows_*) archive "$name" "$name.zip" ;;
	*) archive "$name" "$name.tar.gz" ;;
	esac
	# The modules in the binary with their licenses. What tells one build of the tool from another is left out.
	GOPROXY=off bin/cyclonedx-gomod bin -json -std -licenses -assert-licenses -noserial -notimestamp \
		-version "v$VERSION" "$folder"/nexus* 2>/dev/null |
		jq 'del(.metadata.tools[].hashes) | .metadata.component.licenses = [{license: {id: "Apache-2.0"}}]' \
			>"dist/$name.cdx.json"
done

for machine in amd64 arm64; do
	for format in deb rpm; do
		GOARCH=$machine BINARY=dist/bin/linux_$machine/nexus \
			bin/nfpm package --config deploy/package/nfpm.yaml --packager $format --target dist/ >/dev/null
	done
done

node deploy/npm/pack.js "$VERSION" dist/bin dist/npm

cp -r deploy/helm/agenticnexus dist/stage/
archive agenticnexus "agenticnexus-chart-$VERSION.tgz"

formula=(-e "s/VERSION/$VERSION/g")
for platform in darwin_amd64 darwin_arm64 linux_amd64 linux_arm64; do
	sum=$(sha256sum "dist/agenticnexus_${VERSION}_$platform.tar.gz")
	formula+=(-e "s/SHA256_$platform/${sum%% *}/")
done
sed "${formula[@]}" deploy/homebrew/agenticnexus.rb >dist/agenticnexus.rb

rm -rf dist/stage dist/files
(cd dist && find . -type f -not -path './bin/*' -not -name checksums.txt -printf '%P\n' | sort | xargs sha256sum \
	>checksums.txt)
cat dist/checksums.txt
