#!/bin/bash
# Runs a command beside the container engines that the tests drive: with.sh DIR COMMAND [ARG…]
# Where engines can be started (root, on a Linux with apt-get) they are, for the command's time, and are then required;
# elsewhere the command runs without them and says so. RALPH_ENGINES=off does without.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:?usage: with.sh DIR COMMAND…}
shift
if [[ ${RALPH_ENGINES-} == off || $(uname) != Linux ]] || ((EUID != 0)) || ! command -v apt-get >/dev/null; then
	echo "engines: not started here; tests of docker and podman are left out" >&2
	exec "$@"
fi
"$here/start.sh" "$dir"
trap '"$here/stop.sh" "$dir"' EXIT
# shellcheck source=/dev/null
source "$dir/env"
"$@"
