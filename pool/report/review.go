package report

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Review says in one line how a review ended.
func Review(r *journal.Review) string {
	switch {
	case r.Failed != "":
		return "not reviewed: " + r.Failed
	case r.Accepted && len(r.Findings) == 0:
		return "accepted"
	case r.Accepted:
		return "accepted, with " + count(len(r.Findings), "remark")
	case len(r.Findings) == 0:
		return "not accepted"
	}
	return "not accepted, " + count(len(r.Findings), "finding")
}

// review shows what the reviewer found. Its words are quoted.
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
	for _, s := range journal.Severities() {
		for _, f := range r.Findings {
			if f.Severity == s {
				lines = append(lines, Finding(f))
			}
		}
	}
	for i, text := range lines {
		if i == filesShown {
			fmt.Fprintf(b, "- and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(b, "- %s\n", tracker.QuoteLine(text, words))
	}
	if len(lines) > 0 {
		b.WriteString("\n")
	}
}

// Finding is a finding in one line, with its place. It may be hostile, and is not neutralized here.
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
