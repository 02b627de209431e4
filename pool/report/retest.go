package report

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Ran says how tests ended.
func Ran(r journal.Ran) string {
	switch r.How {
	case journal.RanPassed:
		return "passed"
	case journal.RanUnbuilt:
		return "could not be built or loaded"
	case journal.RanTooLong:
		return "did not end in time"
	case journal.RanNone:
		return "ran no test"
	case journal.RanNot:
		return "could not be started"
	}
	return fmt.Sprintf("failed with exit status %d", r.ExitCode)
}

// Retest says in one line what the tests of a change show. It may quote hostile paths, and neutralizes nothing.
func Retest(r *journal.Retest) string { return retested(r, func(why string) string { return why }) }

// retested says it with the reason as quote shows it.
func retested(r *journal.Retest, quote func(string) string) string {
	switch {
	case r.Exempt:
		return "nothing to prove: " + quote(r.Why)
	case !r.Proved:
		return "none shows what the change does: " + quote(r.Why)
	case r.Why != "":
		return "the gate fails without the change and passes with it; " + quote(r.Why)
	}
	return "they fail without it and pass with it"
}

// retest shows what the tests of the change said with it and without.
func retest(b *strings.Builder, r *journal.Retest) {
	if r == nil {
		return
	}
	fmt.Fprintf(b, "Tests of the change: %s.\n\n", retested(r, func(why string) string { return tracker.QuoteLine(why, line) }))
	for i, run := range r.Runs {
		if i == filesShown {
			fmt.Fprintf(b, "- and %d more\n", len(r.Runs)-i)
			break
		}
		how := "without the change " + Ran(run.Base)
		if run.Tip != nil {
			how += ", with it " + Ran(*run.Tip)
		}
		fmt.Fprintf(b, "- %s: %s\n", tracker.QuoteLine(run.Command, line), how)
	}
	if len(r.Runs) > 0 {
		b.WriteString("\n")
	}
}
