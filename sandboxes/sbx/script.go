package sbx

import (
	"embed"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// inside contains the scripts that are shown in each microVM, for any POSIX shell.
//
//go:embed inside
var inside embed.FS

// files returns the scripts without their folder.
func files() fs.FS {
	sub, err := fs.Sub(inside, "inside")
	if err != nil { // impossible: the name is constant
		panic(err)
	}
	return sub
}

// runScript follows the lines of script in a command's file. It runs as the command's user. It executes the file that it
// found, not a name, so that no shell builtin is used instead. It reports its progress on descriptor 5.
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
exec 4<&-
program=$(look "$1" 2>/dev/null 5>&-)
case $? in
0) ;;
3) echo folder >&5; exit 1 ;;
4) echo missing >&5; exit 1 ;;
*) echo denied >&5; exit 1 ;;
esac
program=${program%.}
environment
cd -- "$dir" && unset OLDPWD
shift
echo started >&5
exec "$program" "$@" 5>&-
`

// script returns the content of a command's file: the command as shell words, and the code that runs it.
func script(dir string, env, argv []string) (string, error) {
	name := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	var b strings.Builder
	b.WriteString("dir=" + quote(dir) + "\nenvironment() {\n:\n")
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

// quote returns the shell word for exactly text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
