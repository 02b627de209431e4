package suite

import (
	"sync"

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
	return programs().Follow(gate, list, read)
}
