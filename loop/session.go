package loop

import (
	"fmt"
	"time"
)

// Resume is the user's choice whether an agent goes on in the session of its last iteration, which still has its context, or begins
// afresh with the whole prompt.
//
// Each request of a resumed session sends all of its context again. That is cheap while the service has it in its cache, and
// while there is not much of it; else reading the repository anew costs less.
type Resume string

const (
	ResumeAuto  Resume = "auto" // where that saves tokens; the zero Resume is the same
	ResumeNever Resume = "never"
)

func (r Resume) validate() error {
	switch r {
	case "", ResumeAuto, ResumeNever:
		return nil
	}
	return fmt.Errorf("resume is %q; it must be %s or %s", string(r), ResumeAuto, ResumeNever)
}

// How much context a resumed session may begin with, in tokens, and how long a service keeps it in its cache.
const (
	maxContext     = 100_000
	maxContextCold = 30_000 // when the cache has forgotten it
	cached         = 5 * time.Minute
)

// lastSession is that of the last iteration. It is in the home of one sandbox, and is worth nothing in another.
type lastSession struct {
	ID           string // empty: there is none that the agent could resume
	Agent, Model string
	Intact       bool      // the agent ended by itself, and reported no failure
	Context      int64     // tokens of its last request and the answer; 0: unknown
	Ended        time.Time // when the agent ended
}

// session is the one in which the agent goes on now; empty: it begins afresh.
func (r Resume) session(last lastSession, agent, model string, now time.Time) string {
	most := int64(maxContext)
	if now.Sub(last.Ended) > cached {
		most = maxContextCold
	}
	if r == ResumeNever || !last.Intact || last.Agent != agent || last.Model != model ||
		last.Context <= 0 || last.Context > most {
		return ""
	}
	return last.ID
}
