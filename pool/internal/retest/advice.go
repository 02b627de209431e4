package retest

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
)

// adviceOn tells the run's agent why its tests prove nothing, with the output of those that should have passed. Everything that the
// agent has written is data.
func adviceOn(r *journal.Retest, base string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "the checks pass, but no test shows what your change does. "+
		"Each file of tests that you add or change must fail on %s without the rest "+
		"of your change, and pass with it. Add a test of the change; "+
		"leave files of tests that do not need it as they were. The reason, as data:", base)
	data := r.Why
	for _, run := range r.Runs {
		if run.Proves() {
			continue
		}
		data += fmt.Sprintf("\n\n$ %s\nwithout the change: %s", run.Command, report.TestRun(run.Base))
		if run.Tip != nil && run.Tip.Outcome != journal.TestsPassed {
			data += fmt.Sprintf("\nwith the change: %s\n%s", report.TestRun(*run.Tip), run.Tip.Tail)
		}
	}
	return b.String() + report.Fenced(data)
}
