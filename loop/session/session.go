// Package session decides whether an agent goes on in the session of its last iteration, which still has its context, or
// begins afresh with the whole prompt.
//
// Each request of a resumed session sends all of its context again. That is cheap while the service has it in its cache, and
// while there is not much of it; else reading the repository anew costs less.
package session

import (
	"fmt"
	"time"
)

// Policy is the user's choice.
type Policy string

const (
	Auto  Policy = "auto" // resume where that saves tokens; the zero Policy is the same
	Never Policy = "never"
)

// Validate refuses what is no policy.
func (p Policy) Validate() error {
	switch p {
	case "", Auto, Never:
		return nil
	}
	return fmt.Errorf("resume is %q; it must be %s or %s", string(p), Auto, Never)
}

// How much context a resumed session may begin with, in tokens, and how long a service keeps it in its cache.
const (
	MaxContext     = 100_000
	MaxContextCold = 30_000 // when the cache has forgotten it
	Cached         = 5 * time.Minute
)

// Last is the session of the last iteration. It is in the home of one sandbox, and is worth nothing in another.
type Last struct {
	ID           string // empty: there is none that the agent could resume
	Agent, Model string
	Intact       bool      // the agent ended by itself, and reported no failure
	Context      int64     // tokens of its last request and the answer; 0: unknown
	Ended        time.Time // when the agent ended
}

// Resume returns the session in which the agent goes on now; empty: it begins afresh.
func (p Policy) Resume(last Last, agent, model string, now time.Time) string {
	most := int64(MaxContext)
	if now.Sub(last.Ended) > Cached {
		most = MaxContextCold
	}
	if p == Never || !last.Intact || last.Agent != agent || last.Model != model ||
		last.Context <= 0 || last.Context > most {
		return ""
	}
	return last.ID
}
