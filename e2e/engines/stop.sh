#!/bin/bash
# Ends what start.sh started in DIR, and removes it: stop.sh DIR. What other folders' engines run stays.
set -euo pipefail

dir=$(cd "${1:?usage: stop.sh DIR}" && pwd)
# shellcheck source=SCRIPTDIR/names.sh
source "$(dirname "${BASH_SOURCE[0]}")/names.sh"
if [[ -s $dir/dockerd.pid ]]; then
	pid=$(<"$dir/dockerd.pid")
	export DOCKER_HOST=unix://$dir/docker.sock
	docker ps --all --quiet | xargs -r docker rm --force >/dev/null 2>&1 || true
	kill "$pid" 2>/dev/null || true
	for ((i = 0; i < 100; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
fi
# Podman's containers and volumes are the folder's own, all of them.
empty_podman() {
	"$@" rm --all --force --time 0 >/dev/null 2>&1 || true
	"$@" volume rm --all --force >/dev/null 2>&1 || true
}
if [[ -d $dir/podman ]]; then
	CONTAINERS_CONF=$dir/containers.conf CONTAINERS_STORAGE_CONF=$dir/storage.conf empty_podman podman
	rm -rf "$podman_run"
fi
# The rootless user is, too, with the process that holds its user namespace, which podman leaves.
if uid=$(id -u "$user" 2>/dev/null); then
	empty_podman as_user podman
	for ((i = 0; i < 100; i++)); do
		pids=$(find /proc -maxdepth 1 -name '[0-9]*' -uid "$uid" -printf '%f ' 2>/dev/null) || true
		[[ $pids ]] || break
		# shellcheck disable=SC2086 # one word each
		kill -KILL $pids 2>/dev/null || true
		sleep 0.1
	done
	rm -rf "/run/user/$uid" "/dev/shm/libpod_rootless_lock_$uid"
	userdel --remove "$user" 2>/dev/null || echo "engines: the user $user stays" >&2
fi
grep -E " $dir/" /proc/mounts | cut -d' ' -f2 | sort -r | xargs -r umount 2>/dev/null || true
# runsc takes a minute to build: bin/ stays for the next start.
find "$dir" -mindepth 1 -maxdepth 1 ! -name bin -exec rm -rf {} +
echo "engines: stopped" >&2
