package suite

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite/script"
)

//nolint:gochecknoglobals // read-only table
var programs = sync.OnceValue(func() script.Programs {
	p := script.Programs{Runners: map[string][]string{}}
	for _, e := range ecosystem.All() {
		p.Interpreters = append(p.Interpreters, e.Interpreters...)
		for program, files := range e.Runners {
			p.Runners[program] = append(p.Runners[program], files...)
		}
	}
	return p
})

// Follow returns the lines of a gate, and one more line for each script, or pattern of scripts, that its scripts run or
// read, directly or indirectly, as far as their texts show. list returns the files of the repository. read returns the
// content of a file and whether it exists.
func Follow(gate []string, list func() []string, read func(file string) (text []byte, ok bool)) []string {
	p, role := programs(), roles(nil)
	p.Tests = func(file string) bool {
		r, _ := role(file)
		return r == ecosystem.Test
	}
	return p.Follow(gate, list, read)
}

// Reached returns a function that reports whether lines, such as those of [Follow], run or read a file: they name it, a pattern that
// matches it, or a folder above it. Case does not count, because some file systems ignore it.
func Reached(lines []string) func(file string) bool {
	files := programs().Files(lines)
	exact := map[string]script.Named{}
	var patterns []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		lower := strings.ToLower(name)
		exact[lower] = files[name]
		if script.IsPattern(name) {
			patterns = append(patterns, lower)
		}
	}
	return func(file string) bool {
		file = strings.ToLower(file)
		for i, c := range file + "/" {
			if n, ok := exact[file[:i]]; c == '/' && ok && (i == len(file) || !n.Folder) {
				return true
			}
		}
		return slices.ContainsFunc(patterns, func(p string) bool { return doublestar.MatchUnvalidated(p, file) })
	}
}
