#!/bin/bash
# Stops what start.sh started in DIR, and removes it: stop.sh DIR. The engines of other folders keep running.
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
# All of podman's containers and volumes belong to the folder.
empty_podman() {
	"$@" rm --all --force --time 0 >/dev/null 2>&1 || true
	"$@" volume rm --all --force >/dev/null 2>&1 || true
}
if [[ -d $dir/podman ]]; then
	CONTAINERS_CONF=$dir/containers.conf CONTAINERS_STORAGE_CONF=$dir/storage.conf empty_podman podman
	rm -rf "$podman_run"
fi
# So does the rootless user, with the process that holds its user namespace, which podman leaves running.
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
# runsc takes a minute to build, so bin/ stays for the next start.
find "$dir" -mindepth 1 -maxdepth 1 ! -name bin -exec rm -rf {} +
echo "engines: stopped" >&2
