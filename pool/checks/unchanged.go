package checks

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
)

// unchangedMost is how many failures of the gate in a row, each after new commits and just as on the base, end the run. The
// first is no reason: a test of what is to be fixed fails on the base, too.
const unchangedMost = 2

// Unchanged finds out that the gate fails just as on the base whatever an agent commits. It belongs to one run's loop.
type Unchanged struct {
	base  *loop.Check // that failed there; nil: none, or its output is not known
	place string      // the run's worktree
	times int         // in a row, after new commits
}

// NewUnchanged returns an Unchanged for what the gate said on the base (nil: that is not known), and a run's worktree. The
// checkout of the base was beside it.
func NewUnchanged(v *journal.Verification, place string) *Unchanged {
	u := &Unchanged{place: place}
	if v != nil && !v.Passed() && !v.Setup {
		if last := v.Checks[len(v.Checks)-1]; last.Tail != redact.Text {
			u.base = &last
		}
	}
	return u
}

// After notes what the gate said after an iteration with so many new commits, and reports that no work changes it.
func (u *Unchanged) After(commits int, gate []loop.Check) bool {
	switch {
	case u.base == nil || len(gate) == 0 || !sameFailure(*u.base, gate[len(gate)-1], u.place):
		u.times = 0
	case commits > 0:
		u.times++
	}
	return u.times >= unchangedMost
}

// cutFrom is the length from which an output may lack its beginning: loop keeps the last 4 KiB, from the first whole rune.
const cutFrom = 4<<10 - 3

// varying finds what differs between two runs of one command that end for the same reason.
var varying = pattern.Lazy(strings.Join([]string{
	`(?:/private)?(?:/var)?/(?:tmp|folders)/[^\s:;,'"()]+`,                       // temporary paths
	`\b\d{8}-\d{6}-[0-9a-f]{12}(?:-\w+)?`,                                        // runs
	`\d{4}-\d\d-\d\d[T _]\d\d[:_]\d\d[:_]\d\d(?:[.,_]\d+)?(?:Z|[+-]\d\d:?\d\d)?`, // times
	`\b\d{4}[-/]\d\d[-/]\d\d\b`, `\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b`,             // days, and times of one
	`\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|m|min|mins|minutes?|h)\b`, // durations
	`\b\d+m\d+(?:\.\d+)?s\b`, `\b0[xX][0-9a-fA-F]+\b`, `\b[0-9a-f]{7,}\b`, // durations, hexadecimal numbers
}, "|"))

// sameFailure reports that two checks have failed in the same way. place is the worktree of one; that of the other lies beside it.
func sameFailure(a, b loop.Check, place string) bool {
	if a.Command != b.Command || a.ExitCode != b.ExitCode || a.TimedOut != b.TimedOut {
		return false
	}
	x, y := lasting(a.Tail, place), lasting(b.Tail, place)
	if max(len(a.Tail), len(b.Tail)) >= cutFrom { // the beginning may be missing, at another line in each
		n := max(0, min(len(x), len(y))-1)
		x, y = x[len(x)-n:], y[len(y)-n:]
	}
	return slices.Equal(x, y)
}

// lasting are the lines of an output without what differs each time.
func lasting(tail, place string) []string {
	if beside := path.Dir(place); beside != "/" && beside != "." {
		tail = regexp.MustCompile(regexp.QuoteMeta(beside)+`/[^\s/:;,'"()]+`).ReplaceAllString(tail, ".")
	}
	return strings.Split(strings.TrimSpace(varying().ReplaceAllString(tail, "~")), "\n")
}
