package pool

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
)

// earlier tells the agent what became of the run before, so that it does not start from nothing; empty when there was
// none, or when a person has taken over since.
func earlier(runs []Record) string {
	last, ok := lastEnded(runs)
	if !ok || last.Verdict.Outcome == Succeeded {
		return ""
	}
	v := last.Verdict
	var b strings.Builder
	fmt.Fprintf(&b, "An earlier run of this issue ended: %s.", v.Outcome)
	data := v.Reason
	for _, c := range v.Gate {
		if !c.Passed() {
			data += fmt.Sprintf("\n\n$ %s\n%s", c.Command, lastBytes(c.Tail, reportTail))
		}
	}
	if v.Commits > 0 {
		fmt.Fprintf(&b, " Its commits are on this branch.")
	}
	if v.WIP != "" {
		fmt.Fprintf(&b, " Changes it had not committed are saved: look at `git show %.12s`, and take over what is good.", v.WIP)
	}
	if data = strings.TrimSpace(data); data != "" {
		data, _ = tracker.Clean(data)
		fence := "~~~~"
		for strings.Contains(data, fence) {
			fence += "~"
		}
		fmt.Fprintf(&b, "\n\n%s\n%s\n%s\n", fence, data, fence)
	}
	return b.String()
}
