#!/bin/sh
# Installs the coding CLIs of package.json into .tools/npm (or the given folder), at the exact versions of the lock file.
# Does nothing if they are installed already. Prints one line.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
dest=${1:-$here/../../.tools/npm}
mkdir -p "$dest"
dest=$(cd "$dest" && pwd)
stamp=$dest/.installed
want=$(cat "$here/package.json" "$here/package-lock.json" | cksum; uname -sm)

versions() {
	sed -n 's/^ *"@[a-z-]*\/\([a-z-]*\)": "\([0-9.]*\)".*/\1 \2/p' "$here/package.json" | paste -s -d , - | sed 's/,/, /g'
}

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ]; then
	echo "agents: $(versions) (already there)"
	exit 0
fi
rm -f "$stamp"

if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "agents: node and npm are needed: install them (Debian: sudo apt-get install nodejs npm), then run $0 again" >&2
		exit 1
	fi
	log=$(mktemp)
	if ! { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends nodejs npm; } >"$log" 2>&1; then
		cat "$log" >&2
		echo "agents: apt-get could not install nodejs and npm" >&2
		exit 1
	fi
	rm -f "$log"
fi

cp "$here/package.json" "$here/package-lock.json" "$dest/"
# No package scripts run except the one that installs claude's native program. The versions are exact, so that npm does not
# choose older ones for an older node; both programs have their own runtime or work on node 18.
npm ci --prefix "$dest" --ignore-scripts --no-audit --no-fund --loglevel=error >&2
(cd "$dest" && node node_modules/@anthropic-ai/claude-code/install.cjs >&2)
"$dest/node_modules/.bin/claude" --version >/dev/null
"$dest/node_modules/.bin/codex" --version >/dev/null
printf '%s\n' "$want" >"$stamp"
echo "agents: $(versions) in $dest"
