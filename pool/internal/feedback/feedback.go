// Package feedback writes the texts for the agent: the facts that a prompt names, the results of earlier work, and what is wrong
// with the present work. All of them go into a prompt, in which other people's text is data. Packages pool and pool/run use it.
// It keeps no state and is safe for concurrent use.
package feedback

import (
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Earlier tells the agent how the run before ended, so that it does not start from nothing. It is empty if there was none, or if
// it succeeded.
func Earlier(runs journal.History) string {
	last, ok := runs.Last()
	if !ok || last.Verdict.Outcome == journal.Succeeded {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "An earlier run of this issue ended: %s.", last.Verdict.Outcome)
	data := report.Reason(last.Verdict.Reason)
	checks := last.Facts.Gate
	if last.Facts.Verify != nil {
		checks = last.Facts.Verify.Checks
	}
	for _, c := range checks {
		if !c.Passed() {
			data += fmt.Sprintf("\n\n$ %s\n%s", c.Command, report.LastBytes(c.Tail, 1200))
		}
	}
	if last.Commits > 0 {
		b.WriteString(" Its commits are on this branch.")
	}
	if last.WIP != "" {
		fmt.Fprintf(&b, " Its uncommitted changes are saved: look at `git show %.12s`, and reuse what is good.", last.WIP)
	}
	return b.String() + report.Fenced(data)
}

// Restarted tells the agent that it starts from the base although there was earlier work.
func Restarted(last journal.Record, why string) string {
	text := "Earlier work on this issue was rejected and is not on this branch. Start again, and take a different approach."
	return text + report.Fenced(strings.TrimSpace(why+"\n"+report.Reason(last.Verdict.Reason)))
}

// FollowUp tells the agent what is wrong with its request.
func FollowUp(f tracker.FollowUp, base string) string {
	what := "it needs more work"
	switch f.Reason {
	case tracker.ChecksFailed:
		what = "required checks have failed"
	case tracker.Conflict:
		what = fmt.Sprintf("it conflicts with %s; merge %s into your branch and resolve the conflicts", base, base)
	case tracker.ChangesRequested:
		what = "a reviewer asks for changes"
	case tracker.AskedFor:
		what = "a reviewer asks for another round of work"
	}
	return fmt.Sprintf("Your work is already in a pull or merge request, and %s.", what) + report.Fenced(f.Feedback)
}

// Baseline tells the agent which check failed before it began; empty if all passed.
func Baseline(v *journal.Verification) string {
	if v == nil || v.Passed() {
		return ""
	}
	c := v.Checks[len(v.Checks)-1]
	return fmt.Sprintf("\n\nBefore you began, this check already failed on %s. It has to pass when you are done.", v.Base) +
		report.Fenced(fmt.Sprintf("$ %s\n%s", c.Command, report.LastBytes(c.Tail, 1200)))
}

// Asked tells the agent what a person has asked for; empty if there is no text.
func Asked(a *journal.Asked) string {
	if a == nil || a.Text == "" {
		return ""
	}
	return "\n\nA person with permission to direct this work asks for this:" + report.Fenced(a.By+":\n"+a.Text)
}

// Checkout tells the agent that the checks pass in its worktree but not on a clean checkout. uncommitted lists files whose
// changes are in no commit.
func Checkout(checks []loop.Check, uncommitted []string) string {
	missing := ""
	if len(uncommitted) > 0 {
		missing = " These files have changes that are not committed: " + strings.Join(uncommitted, ", ") + "."
	}
	return fmt.Sprintf("the checks pass in your worktree, but not on a clean checkout of your commit.%s Ignored files and caches are not "+
		"in a commit either. Commit what is missing. The check that failed, as data:%s", missing, failed(checks))
}

// Unrelated tells the agent that its commits cannot be merged.
func Unrelated(base string) string {
	return fmt.Sprintf("your commits have no history in common with %s, so they cannot be merged; make them again on top of %s", base, base)
}

// Checks tells the agent that its commits pass only because they changed the checks; empty if that is not so.
func Checks(s journal.State, files journal.GateFiles, base string) string {
	w := s.Facts.Watch
	switch {
	case w.Disabled() != "":
		return fmt.Sprintf("the checks pass, but they would also pass if tests failed: "+
			"with a failing test at %s they fail on %s and pass on "+
			"your commit. Do not end the process early, and do not skip or replace the test runner", w.Disabled(), base)
	case files == journal.GateFilesRequire && w != nil && w.Base != nil && !w.Base.Passed():
		return fmt.Sprintf("the checks pass only because you changed tests, "+
			"configuration or scripts that they depend on. With those files as "+
			"they were on %s this fails, as data:%s", base, failed(w.Base.Checks))
	}
	return ""
}

// Import returns feedback for the agent if its commits are no result: they only look complete or, with reword, their messages
// would act on a forge.
func Import(got worktree.Import, reword bool) string {
	if reword && len(got.ForgeCommands) > 0 {
		var list []string
		for _, c := range got.ForgeCommands {
			list = append(list, fmt.Sprintf("%.12s (%s)", c.SHA, c.Subject))
		}
		return fmt.Sprintf("the messages of these commits would trigger actions on the forge, by a closing keyword, "+
			"a mention or a directive such as [skip ci]; reword them: %s",
			strings.Join(list, ", "))
	}
	if len(got.Gitlinks) > 0 {
		return fmt.Sprintf("%s is a git repository inside the repository, so its files are not in your commit: "+
			"remove its .git folder, `git rm --cached` it, and commit the files",
			strings.Join(got.Gitlinks, ", "))
	}
	return ""
}

// failed returns the last check, which failed, as data for the agent.
func failed(checks []loop.Check) string {
	c := checks[len(checks)-1]
	return report.Fenced(fmt.Sprintf("$ %s\n%s", c.Command, c.Tail))
}
