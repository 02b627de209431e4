#!/bin/sh
# run.sh [NAME…]: runs the named checks, or all; fails when one of them does.
cd "$(dirname "$0")/.." || exit 1
if [ $# -eq 0 ]; then
	for file in checks/*.sh; do
		[ "$file" = checks/run.sh ] || set -- "$@" "$(basename "$file" .sh)"
	done
fi
failed=0
for name in "$@"; do
	[ -n "$name" ] || continue # the gate on main is of no issue
	if sh "checks/$name.sh"; then
		echo "ok   $name"
	else
		echo "FAIL $name"
		failed=1
	fi
done
exit $failed
