#!/bin/bash
# Runs a command beside the container engines that the tests drive: with.sh DIR COMMAND [ARG…]
# RALPH_ENGINES names them: docker, runsc (gVisor under docker), podman, podman-rootless. Those that it names must start, and
# their tests may not be skipped. Without it docker and podman are used where they can start (root, on a Linux with
# apt-get). "off" uses none, "all" all.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:?usage: with.sh DIR COMMAND…}
shift
engines=${RALPH_ENGINES-}
unset RALPH_ENGINES # the command may be ralph, which reads RALPH_… as its settings
if [[ -z $engines ]]; then
	engines=off
	if [[ $(uname) == Linux ]] && ((EUID == 0)) && command -v apt-get >/dev/null; then engines="docker podman"; fi
fi
if [[ $engines == off ]]; then
	echo "engines: not started here; tests of docker and podman are left out" >&2
	exec "$@"
fi
if [[ $engines == all ]]; then engines="docker runsc podman podman-rootless"; fi
# shellcheck disable=SC2086 # a list of names
"$here/start.sh" "$dir" $engines
trap '"$here/stop.sh" "$dir"' EXIT
# shellcheck source=/dev/null
source "$dir/env"
"$@"
