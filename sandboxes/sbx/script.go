package sbx

import (
	"fmt"
	"regexp"
	"strings"
)

// runScript follows, in a command's file, the lines of order. It is for any POSIX shell. The variable RALPH_EXEC marks the
// command's processes. The command starts with the
// file that was found, not a name, so that no shell builtin takes its place; the shell's own remarks about it ("Killed")
// go nowhere.
const runScript = `
look() {
	environment
	cd -- "$dir" || exit 3
	case $1 in
	*/*)
		[ -e "$1" ] || exit 4
		[ -f "$1" ] && [ -x "$1" ] || exit 5
		printf '%s.' "$1"
		exit 0
		;;
	esac
	rest=$PATH: why=4
	while [ -n "$rest" ]; do
		at=${rest%%:*} rest=${rest#*:}
		case $at in /*) ;; *) continue ;; esac
		[ -f "$at/$1" ] || continue
		[ -x "$at/$1" ] || { why=5; continue; }
		printf '%s.' "$at/$1"
		exit 0
	done
	exit "$why"
}
say() {
	printf '\000ralph-%s %s %s\n' "$id" "$1" "$2" >&3
	exit 0
}
exec 3>&2 2>/dev/null
program=$(look "$1" 3>&-)
case $? in
0) ;;
3) say refused folder ;;
4) say refused missing ;;
*) say refused denied ;;
esac
program=${program%.}
(
	exec 2>&3 3>&-
	environment
	cd -- "$dir" && unset OLDPWD
	RALPH_EXEC=$id
	export RALPH_EXEC
	shift
	exec "$program" "$@"
)
code=$?
` + endLoop + `
say exit "$code"
`

// endLoop kills all processes of the command $id, until there is none, or five seconds have passed.
const endLoop = `n=0
while left=$(grep -lF -e "RALPH_EXEC=$id" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3); [ -n "$left" ] && [ "$n" -lt 500 ]; do
	kill -s KILL $left 2>/dev/null
	n=$((n + 1))
	sleep 0.01
done
`

// endScript signals a command's processes: end ID TERM once, end ID KILL until none is left.
const endScript = `id=$1
if [ "$2" = TERM ]; then
	left=$(grep -lF -e "RALPH_EXEC=$id" /proc/[0-9]*/environ 2>/dev/null | cut -d/ -f3)
	[ -z "$left" ] || kill -s TERM $left 2>/dev/null
	exit 0
fi
` + endLoop + `[ -z "$left" ]
`

// gitScript puts a .git file of ralph's over the worktree's own, inside only: git GITDIR WORKTREE.
const gitScript = `set -e
umask 022
mkdir -p /run/ralph
printf 'gitdir: %s\n' "$1" >/run/ralph/git
chown "$(stat -c %u:%g "$2")" /run/ralph/git
mount --bind /run/ralph/git "$2/.git"
mount -o remount,bind,ro "$2/.git"
`

// order is the beginning of a command's file: what to run, as words of the shell.
func order(id, dir string, env, argv []string) (string, error) {
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	var b strings.Builder
	b.WriteString("id=" + quote(id) + "\ndir=" + quote(dir) + "\nenvironment() {\n:\n")
	for _, entry := range env {
		key, value, ok := strings.Cut(entry, "=")
		if !ok || key == "" {
			continue
		}
		if !name.MatchString(key) {
			return "", fmt.Errorf("the variable %q has a name that a shell cannot set", key)
		}
		b.WriteString("export " + key + "=" + quote(value) + "\n")
	}
	b.WriteString("}\nset --")
	for _, a := range argv {
		b.WriteString(" " + quote(a))
	}
	b.WriteString("\n")
	if strings.ContainsRune(b.String(), 0) {
		return "", fmt.Errorf("an argument or variable has a NUL in it")
	}
	return b.String() + runScript, nil
}

// quote makes a word of the shell that means exactly text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
