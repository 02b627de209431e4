#!/bin/bash
# Ends what start.sh started in DIR, and removes it: stop.sh DIR
set -euo pipefail

dir=$(cd "${1:?usage: stop.sh DIR}" && pwd)
if [[ -s $dir/dockerd.pid ]]; then
	pid=$(<"$dir/dockerd.pid")
	export DOCKER_HOST=unix://$dir/docker.sock
	docker ps --all --quiet --filter label=ralph.run | xargs -r docker rm --force >/dev/null 2>&1 || true
	kill "$pid" 2>/dev/null || true
	for ((i = 0; i < 100; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
fi
if [[ -s $dir/containers.conf ]] && command -v podman >/dev/null; then
	export CONTAINERS_CONF=$dir/containers.conf
	podman ps --all --quiet --filter label=ralph.run | xargs -r podman rm --force >/dev/null 2>&1 || true
fi
# Rootless podman leaves a process that holds its user namespace.
if pause=/run/user/$(id -u ralph-rootless 2>/dev/null)/libpod/tmp/pause.pid && [[ -s $pause ]]; then
	kill "$(<"$pause")" 2>/dev/null || true
fi
grep -E " $dir/" /proc/mounts | cut -d' ' -f2 | sort -r | xargs -r umount 2>/dev/null || true
# runsc takes a minute to build: bin/ stays for the next start.
find "$dir" -mindepth 1 -maxdepth 1 ! -name bin -exec rm -rf {} +
echo "engines: stopped" >&2
