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

// unchangedMost is the number of consecutive failures of the gate, each after new commits and the same as on the base, that ends
// the run. One such failure is not enough: a test of the bug to fix fails on the base, too.
const unchangedMost = 2

// Unchanged detects that the gate fails in the same way as on the base whatever an agent commits. It belongs to one run's loop.
type Unchanged struct {
	base  *loop.Check // the check that failed there; nil: none, or its output is unknown
	place string      // the run's worktree
	times int         // consecutive failures after new commits
}

// NewUnchanged returns an Unchanged for the result of the gate on the base (nil: unknown) and for a run's worktree. The checkout
// of the base was in the same parent folder.
func NewUnchanged(v *journal.Verification, place string) *Unchanged {
	u := &Unchanged{place: place}
	if v != nil && !v.Passed() && !v.Setup {
		if last := v.Checks[len(v.Checks)-1]; last.Tail != redact.Text {
			u.base = &last
		}
	}
	return u
}

// After notes the gate's result after an iteration with this number of new commits, and reports whether more work is useless.
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

// varying matches what may differ between two runs of one command that fail for the same reason.
var varying = pattern.Lazy(strings.Join([]string{
	`(?:/private)?(?:/var)?/(?:tmp|folders)/[^\s:;,'"()]+`,                       // temporary paths
	`\b\d{8}-\d{6}-[0-9a-f]{12}(?:-\w+)?`,                                        // runs
	`\d{4}-\d\d-\d\d[T _]\d\d[:_]\d\d[:_]\d\d(?:[.,_]\d+)?(?:Z|[+-]\d\d:?\d\d)?`, // times
	`\b\d{4}[-/]\d\d[-/]\d\d\b`, `\b\d{1,2}:\d\d:\d\d(?:[.,]\d+)?\b`,             // days, and times of one
	`\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|m|min|mins|minutes?|h)\b`, // durations
	`\b\d+m\d+(?:\.\d+)?s\b`, `\b0[xX][0-9a-fA-F]+\b`, `\b[0-9a-f]{7,}\b`, // durations, hexadecimal numbers
}, "|"))

// sameFailure reports whether two checks have failed in the same way. place is the worktree of one; the other was in its parent
// folder.
func sameFailure(a, b loop.Check, place string) bool {
	if a.Command != b.Command || a.ExitCode != b.ExitCode || a.TimedOut != b.TimedOut {
		return false
	}
	x, y := lasting(a.Tail, place), lasting(b.Tail, place)
	if max(len(a.Tail), len(b.Tail)) >= cutFrom { // each may lack its beginning, cut at another line
		n := max(0, min(len(x), len(y))-1)
		x, y = x[len(x)-n:], y[len(y)-n:]
	}
	return slices.Equal(x, y)
}

// lasting returns the lines of an output without the parts that differ each time.
func lasting(tail, place string) []string {
	if beside := path.Dir(place); beside != "/" && beside != "." {
		tail = regexp.MustCompile(regexp.QuoteMeta(beside)+`/[^\s/:;,'"()]+`).ReplaceAllString(tail, ".")
	}
	return strings.Split(strings.TrimSpace(varying().ReplaceAllString(tail, "~")), "\n")
}
