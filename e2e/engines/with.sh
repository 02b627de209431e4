#!/bin/bash
# Runs a command with the container engines that the tests drive: with.sh DIR COMMAND [ARG…]
#
# RALPH_ENGINES lists them: docker, runsc (gVisor under docker), podman, podman-rootless. Listed engines must start, and
# their tests must not be skipped. If it is not set, docker and podman are used where they can start (as root on a Linux with
# apt-get). "off" uses none, "all" all.
set -euo pipefail

# run runs the command in its own process group. A signal to this script alone, for example from make, is forwarded to the
# group. After a signal no process of the group is left when run returns, so that the engines can be stopped.
run() {
	local pid status s signal='' i
	set -m
	"$@" &
	pid=$!
	set +m
	for s in HUP INT TERM; do
		# shellcheck disable=SC2064 # what they are now
		trap "signal=$s; kill -$s -- -$pid 2>/dev/null || true" "$s"
	done
	while status=0 && { wait "$pid" || status=$?; } && kill -0 "$pid" 2>/dev/null; do :; done
	[[ $signal ]] || return "$status"
	for ((i = 0; i < 300; i++)); do
		kill -0 -- "-$pid" 2>/dev/null || return "$status"
		sleep 0.1
	done
	kill -KILL -- "-$pid" 2>/dev/null || true
	return "$status"
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:?usage: with.sh DIR COMMAND…}
shift
engines=${RALPH_ENGINES-}
unset RALPH_ENGINES # the command may be ralph, which reads RALPH_… variables as settings
if [[ -z $engines ]]; then
	engines=off
	if [[ $(uname) == Linux ]] && ((EUID == 0)) && command -v apt-get >/dev/null; then engines="docker podman"; fi
fi
if [[ $engines == off ]]; then
	echo "engines: not started here; tests of docker and podman are left out" >&2
	run "$@"
	exit
fi
if [[ $engines == all ]]; then engines="docker runsc podman podman-rootless"; fi
# shellcheck disable=SC2086 # a list of names
"$here/start.sh" "$dir" $engines
trap '"$here/stop.sh" "$dir"' EXIT
# shellcheck source=/dev/null
source "$dir/env"
run "$@"
