package report

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// filesShown is the number of changed files and findings that a report lists.
const filesShown = 20

// bullets writes the first lines as a list, and the number of the other lines plus more.
func bullets(b *strings.Builder, lines []string, more int) {
	items(b, lines, more)
	if len(lines) > 0 {
		b.WriteString("\n")
	}
}

// items writes bullets without the empty line at their end.
func items(b *strings.Builder, lines []string, more int) {
	shown := lines[:min(len(lines), filesShown)]
	for _, text := range shown {
		fmt.Fprintf(b, "- %s\n", text)
	}
	if more += len(lines) - len(shown); more > 0 {
		fmt.Fprintf(b, "- and %d more\n", more)
	}
}

// watch writes, first of all, how the commits changed the checks that they passed.
func watch(b *strings.Builder, w *journal.Watch) {
	if w == nil {
		return
	}
	if w.Unnoticed != "" && len(w.Canaries) == 0 {
		fmt.Fprintf(b, "The gate does not notice a failing test (tried with %s, on the base as well): it does not run such tests.\n\n",
			tracker.Code(w.Unnoticed))
	}
	if len(w.Files)+len(w.Findings) == 0 {
		return
	}
	head := "The agent changed " + plural.Of(len(w.Files)+w.UnlistedFiles, "file") + " that the checks depend on"
	if len(w.Files) == 0 {
		head = "The agent changed no file that the checks depend on, but check this"
	}
	fmt.Fprintf(b, "%s%s:\n\n", head, tests(w))
	var lines []string
	for _, f := range w.Files {
		text := fmt.Sprintf("%s: %s", tracker.QuoteLine(f.Path, line), f.Why)
		switch {
		case f.Added:
			text += ", added"
		case f.Removed:
			text += ", removed"
		case f.OldPath != "":
			text += ", was " + tracker.QuoteLine(f.OldPath, line)
		}
		lines = append(lines, text)
	}
	items(b, lines, w.UnlistedFiles)
	lines = nil
	for _, f := range w.Findings {
		lines = append(lines, "Look at "+tracker.QuoteLine(f, line))
	}
	items(b, lines, 0)
	b.WriteString("\n")
	if w.GateNotRun {
		b.WriteString("The gate did not run with these files as they were on the " +
			"base: it ran in the agent's worktree only.\n\n")
	}
	if w.Base != nil {
		fmt.Fprintf(b, "With these files as they were on the base, the gate %s.\n\n", verdict(w.Base))
	}
	if n := len(w.Canaries); n > 0 && w.Disabled() == "" {
		fmt.Fprintf(b, "The gate fails when a failing test is added to the commits (%s tried).\n\n", plural.Of(n, "place"))
	}
}

// verdict says whether the checks passed, and which one failed.
func verdict(v *journal.Verification) string {
	if v.Passed() {
		return "passes"
	}
	for _, c := range v.Checks {
		switch {
		case c.TimedOut:
			return fmt.Sprintf("fails: %s %s", tracker.QuoteLine(c.Command, line), c.Ending())
		case !c.Passed():
			return fmt.Sprintf("fails: %s, exit status %d", tracker.QuoteLine(c.Command, line), c.ExitCode)
		}
	}
	return "fails"
}

// tests returns counts of added, removed and skipped tests in brackets; "" if there are none.
func tests(w *journal.Watch) string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{w.Added, "added"}, {w.Removed, "removed"}, {w.Skipped, "more skipped"}, {w.Focused, "more focused"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	out := strings.Join(parts, ", ")
	if out != "" {
		out = "tests: " + out
	}
	if w.Assertions > 0 {
		if out != "" {
			out += "; "
		}
		out += plural.Of(w.Assertions, "assertion") + " fewer"
	}
	if out == "" {
		return ""
	}
	return " (" + out + ")"
}

// TestRun describes how tests ended.
func TestRun(r journal.TestRun) string {
	switch r.Outcome {
	case journal.TestsPassed:
		return "passed"
	case journal.TestsNotBuilt:
		return "could not be built or loaded"
	case journal.TestsTimedOut:
		return "did not end in time"
	case journal.TestsNone:
		return "ran no test"
	case journal.TestsNotStarted:
		return "could not be started"
	}
	return fmt.Sprintf("failed with exit status %d", r.ExitCode)
}

// Retest returns one line with the result of a change's tests. It may quote hostile paths, and does not neutralize them.
func Retest(r *journal.Retest) string { return retested(r, func(why string) string { return why }) }

// retested implements Retest, with the reason formatted by quote.
func retested(r *journal.Retest, quote func(string) string) string {
	switch {
	case r.Exempt:
		return "nothing to prove, because " + quote(r.Why)
	case r.NotStarted():
		return "they could not be run: " + quote(r.Why)
	case !r.Proved:
		return "none shows what the change does, because " + quote(r.Why)
	case r.Already:
		return "the gate failed on the base already, and passes with the change; " + quote(r.Why)
	case r.Why != "":
		return "the gate fails without the change and passes with it; " + quote(r.Why)
	}
	return "they fail without it and pass with it"
}

// quoteUnlessPlain quotes a reason, unless it has only words: no name of a file, and nothing that a tracker acts on.
func quoteUnlessPlain(why string) string {
	if strings.Trim(why, "abcdefghijklmnopqrstuvwxyz ,") == "" {
		return why
	}
	return tracker.QuoteLine(why, line)
}

// retest writes the results of the change's tests with it and without it.
func retest(b *strings.Builder, r *journal.Retest) {
	if r == nil {
		return
	}
	fmt.Fprintf(b, "Tests of the change: %s.\n\n", retested(r, quoteUnlessPlain))
	var lines []string
	for _, run := range r.Runs {
		how := "without the change " + TestRun(run.Base)
		if run.Tip != nil {
			how += ", with it " + TestRun(*run.Tip)
		}
		lines = append(lines, tracker.QuoteLine(run.Command, line)+": "+how)
	}
	bullets(b, lines, 0)
}

// Review returns one line with the result of a review.
func Review(r *journal.Review) string {
	switch {
	case r.Failed != "":
		return "not reviewed: " + r.Failed
	case r.Accepted && len(r.Findings) == 0:
		return "accepted"
	case r.Accepted:
		return "accepted, with " + plural.Of(len(r.Findings), "remark")
	case len(r.Findings) == 0:
		return "not accepted"
	}
	return "not accepted, " + plural.Of(len(r.Findings), "finding")
}

// review writes the reviewer's findings, with its words quoted.
func review(b *strings.Builder, r *journal.Review) {
	if r == nil {
		return
	}
	how := Review(r)
	if r.Failed != "" {
		how = "not reviewed: " + tracker.QuoteLine(r.Failed, line)
	}
	fmt.Fprintf(b, "Review by %s, which has seen the issue, the change and the checks only (round %d, tip `%.12s`): %s.",
		tracker.QuoteLine(r.Agent, line), r.Round, r.Tip, how)
	if r.Failed == "" && !r.Solved {
		b.WriteString(" It says that the issue is not fully solved.")
	}
	if r.Failed == "" && !r.Tested {
		b.WriteString(" It says that the tests do not test it.")
	}
	b.WriteString("\n\n")
	var lines []string
	for _, f := range r.BySeverity() {
		lines = append(lines, tracker.QuoteLine(Finding(f), words))
	}
	bullets(b, lines, 0)
}

// Finding returns one line with a finding and its place. The text may be hostile and is not neutralized.
func Finding(f journal.Finding) string {
	place := ""
	if f.File != "" {
		place = ", " + f.File
		if f.Line > 0 {
			place += fmt.Sprintf(":%d", f.Line)
		}
	}
	return fmt.Sprintf("%s%s: %s", f.Severity, place, strings.Join(strings.Fields(f.Text), " "))
}
