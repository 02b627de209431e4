package judge

import (
	_ "embed" // for the prompt
	"fmt"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/internal/feedback"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

//go:embed prompt.md
var template string

// promptFor returns the whole prompt of the reviewer. Issue, output and diff are data between fences that they cannot close. They
// are inserted in one pass, so that nothing in them is read as a part of the template.
func promptFor(issue tracker.Issue, r journal.Run, f journal.Facts, c change, tag string) string {
	return strings.NewReplacer(
		"{{issue}}", issueText(issue, r), "{{checks}}", checksText(r, f), "{{diff}}", diffText(c),
		"{{tag}}", tag, "{{most}}", strconv.Itoa(mostFindings),
	).Replace(template)
}

func fenced(text string) string { return strings.TrimSpace(report.Fenced(text)) }

func issueText(issue tracker.Issue, r journal.Run) string {
	facts, _ := feedback.PromptFacts(issue, r)
	text := "Title: " + oneLine(facts["issue_title"], 1000) + "\n\n" + facts["issue_body"]
	if comments := strings.TrimSpace(facts["issue_comments"]); comments != "" {
		text += "\n\nComments on it, the oldest first:\n\n" + comments
	}
	return fenced(text)
}

// checksText describes the results of ralph's own checks, on exactly these commits if the checks ran there.
func checksText(r journal.Run, f journal.Facts) string {
	checks, where := f.Gate, "where the change was made"
	switch {
	case f.Verify != nil:
		checks, where = f.Verify.Checks, "on a clean checkout of exactly this change"
	case len(checks) == 0: // they have just passed
		for _, c := range r.Settings.Checks.Gate {
			checks = append(checks, loop.Check{Command: c.Line})
		}
	}
	if len(checks) == 0 {
		return "There are no checks."
	}
	text := "They ran " + where + "."
	var lines []string
	for _, c := range checks {
		lines = append(lines, checkText(c))
	}
	if w := f.Watch; w != nil {
		text += fmt.Sprintf(" Tests: %d added, %d removed, %d more skipped.", w.Added, w.Removed, w.Skipped)
		if w.Changed() {
			text += " The change modifies files that the checks depend on: make sure that it does not weaken them."
		}
	}
	if r := f.Retest; r != nil {
		lines = append(lines, "The tests of the change: "+report.Retest(r))
		if !r.Settled() {
			text += " No test is known to fail without the change: look at what its tests cover."
		}
	}
	return text + "\n\n" + fenced(strings.Join(lines, "\n"))
}

func checkText(c loop.Check) string {
	return fmt.Sprintf("$ %s\n%s\n", c.Command, c.Ending()) + report.LastBytes(c.Tail, 1200)
}

func diffText(c change) string {
	text := fenced(c.diff)
	if c.cut {
		text += fmt.Sprintf("\n\nThis is only the beginning of the change, which is larger than %d KiB. "+
			"Read the rest in the current folder: `git show --stat HEAD`, and the files.", diffLimit>>10)
	}
	return text
}

// adviceOn turns a review that did not accept into feedback for the run's agent.
func adviceOn(r *journal.Review) string {
	var b strings.Builder
	b.WriteString("The checks pass, but a reviewer did not accept the change. " +
		"The reviewer has seen only the issue, your change and the checks.")
	if !r.Solved {
		b.WriteString(" It does not fully solve the issue.")
	}
	if !r.Tested {
		b.WriteString(" Its tests do not test what the issue asks for.")
	}
	b.WriteString(" Check each finding, and fix those that are right. Where a finding is wrong, " +
		"leave the code as it is and explain in a comment why. Commit, and say that you are done.")
	var list []string
	for _, f := range r.BySeverity() {
		list = append(list, "- "+report.Finding(f))
	}
	return b.String() + report.Fenced(strings.Join(list, "\n"))
}
