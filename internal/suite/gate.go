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

// Follow returns the lines of a gate and one more for each script, or pattern of scripts, that those of its scripts run or
// read, and so on, as far as their text tells. list names the files of the repository, and read returns the text of one, and
// whether there is one.
func Follow(gate []string, list func() []string, read func(file string) (text []byte, ok bool)) []string {
	return programs().Follow(gate, list, read)
}
