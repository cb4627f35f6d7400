#!/bin/bash
# Builds the API server of custom resources from Debian's sources, once, and serves it with etcd until its input ends.
# Usage: serve.sh DIRECTORY PORT. It takes root, mmdebstrap, openssl and some four minutes of two idle cores.
set -euo pipefail
directory=$1 port=$2 root=$1/sid
if [ ! -x "$root/root/apiextensions-apiserver" ]; then
  rm -rf "$root" && mkdir -p "$directory"
  # The list of sid may be older than its date allows, where the mirror is a copy.
  mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' \
    --include=golang-k8s-apiextensions-apiserver-dev,golang-k8s-apiserver-dev,golang-go,etcd-server,ca-certificates \
    sid "$root" http://deb.debian.org/debian >&2
  mount --bind /dev "$root/dev" && mount -t proc proc "$root/proc"
  chroot "$root" env HOME=/root GOPATH=/usr/share/gocode GO111MODULE=off GOTOOLCHAIN=local CGO_ENABLED=0 \
    nice go build -o /root/apiextensions-apiserver k8s.io/apiextensions-apiserver >&2
  umount "$root/proc" "$root/dev"
fi
work=$(mktemp -d "$root/tmp/crd-XXXXXX")
inside=${work#"$root"}
cd "$work"
openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -subj /CN=ca -days 2 2>/dev/null
openssl req -newkey rsa:2048 -nodes -keyout client.key -out client.csr -subj /O=system:masters/CN=proof 2>/dev/null
openssl x509 -req -in client.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out client.crt -days 2 2>/dev/null
# No other server is asked, but the flags want one named.
cat > nowhere <<K
{"apiVersion":"v1","kind":"Config","clusters":[{"name":"x","cluster":{"server":"http://127.0.0.1:1"}}],"users":[{"name":"x","user":{}}],
 "contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],"current-context":"x"}
K
etcd=http://127.0.0.1:$((port + 1)) peer=http://127.0.0.1:$((port + 2))
chroot "$root" etcd --data-dir "$inside/etcd" --listen-client-urls "$etcd" --advertise-client-urls "$etcd" \
  --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" >"$work/etcd.log" 2>&1 &
etcd_pid=$!
# Whoever kills it by its number finds it started again, as a pod is.
serve() {
  while true; do
    chroot "$root" /root/apiextensions-apiserver --etcd-servers="$etcd" --secure-port="$port" --bind-address=127.0.0.1 \
      --cert-dir="$inside" --client-ca-file="$inside/ca.crt" --kubeconfig="$inside/nowhere" \
      --authentication-kubeconfig="$inside/nowhere" --authorization-kubeconfig="$inside/nowhere" --authentication-skip-lookup \
      --enable-priority-and-fairness=false \
      --disable-admission-plugins=NamespaceLifecycle,MutatingAdmissionWebhook,ValidatingAdmissionWebhook,ValidatingAdmissionPolicy,MutatingAdmissionPolicy \
      >>"$work/server.log" 2>&1 &
    echo $! >"$work/server.pid"
    wait $! || true
    sleep 1
  done
}
# Bash would tell of each that is killed.
serve 2>/dev/null &
serve_pid=$!
trap 'exec 2>/dev/null; kill -KILL "$serve_pid" "$etcd_pid" "$(cat "$work/server.pid")" 2>/dev/null || true; rm -rf "$work"' EXIT
echo "$work"
cat >/dev/null
