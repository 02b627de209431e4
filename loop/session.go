package loop

import (
	"fmt"
	"time"
)

// Resume is the user's choice whether an agent resumes the session of its last iteration, with its context, or starts again with
// the whole prompt.
//
// Each request of a resumed session sends its whole context again. That is cheap as long as the service has it in its cache, and
// as long as it is small; otherwise reading the repository again costs less.
type Resume string

const (
	ResumeAuto  Resume = "auto" // if that saves tokens; same as the zero Resume
	ResumeNever Resume = "never"
)

func (r Resume) validate() error {
	switch r {
	case "", ResumeAuto, ResumeNever:
		return nil
	}
	return fmt.Errorf("resume is %q; it must be %s or %s", string(r), ResumeAuto, ResumeNever)
}

// The maximum context of a resumed session, in tokens, and how long a service caches it.
const (
	maxContext     = 100_000
	maxContextCold = 30_000 // after the cache has expired
	cacheLifetime  = 5 * time.Minute
)

// lastSession is the session of the last iteration. It is stored in the home of one sandbox and useless in another.
type lastSession struct {
	ID           string // empty: there is none that the agent could resume
	Agent, Model string
	Intact       bool      // the agent exited by itself and reported no failure
	Context      int64     // tokens of its last request and the answer; 0: unknown
	Ended        time.Time // when the agent ended
}

// session returns the session to resume now; empty: start with the whole prompt.
func (r Resume) session(last lastSession, agent, model string, now time.Time) string {
	maxTokens := int64(maxContext)
	if now.Sub(last.Ended) > cacheLifetime {
		maxTokens = maxContextCold
	}
	if r == ResumeNever || !last.Intact || last.Agent != agent || last.Model != model ||
		last.Context <= 0 || last.Context > maxTokens {
		return ""
	}
	return last.ID
}
