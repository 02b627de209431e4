package report

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// filesShown is how many of the changed files and findings a report lists.
const filesShown = 20

// watch says first what the commits did to the checks that they passed.
func watch(b *strings.Builder, w *journal.Watch) {
	if w == nil {
		return
	}
	if w.Unnoticed != "" && len(w.Canaries) == 0 {
		fmt.Fprintf(b, "The gate does not notice a failing test (tried with %s, on the base as well): it does not run such tests.\n\n", tracker.Code(w.Unnoticed))
	}
	if len(w.Files)+len(w.Findings) == 0 {
		return
	}
	head := "The agent changed " + count(len(w.Files)+w.More, "file") + " that the checks depend on"
	if len(w.Files) == 0 {
		head = "The agent changed no file that the checks depend on, but something else needs a look"
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
	for _, f := range w.Findings {
		lines = append(lines, "Look at "+tracker.QuoteLine(f, line))
	}
	for i, line := range lines {
		if i == filesShown {
			fmt.Fprintf(b, "- and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(b, "- %s\n", line)
	}
	b.WriteString("\n")
	if w.Unrun {
		b.WriteString("Whether the gate passes with these files as they were on the base was not tried: it ran in the agent's worktree only.\n\n")
	}
	if w.Base != nil {
		fmt.Fprintf(b, "With these files as they were on the base, the gate %s.\n\n", how(w.Base))
	}
	if n := len(w.Canaries); n > 0 && w.Disabled() == "" {
		fmt.Fprintf(b, "The gate fails when a failing test is added to the commits (%s tried).\n\n", count(n, "place"))
	}
}

// how says whether checks passed, and which did not.
func how(v *journal.Verification) string {
	if v.Passed() {
		return "passes"
	}
	for _, c := range v.Checks {
		switch {
		case c.TimedOut:
			return "does not end: " + tracker.QuoteLine(c.Command, line)
		case !c.Passed():
			return fmt.Sprintf("fails: %s, exit status %d", tracker.QuoteLine(c.Command, line), c.ExitCode)
		}
	}
	return "fails"
}

// tests counts what became of the tests, in brackets; empty where nothing did.
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
		out += count(w.Assertions, "assertion") + " fewer"
	}
	if out == "" {
		return ""
	}
	return " (" + out + ")"
}
