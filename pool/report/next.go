package report

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Steps has the data from which a report derives the next step.
type Steps struct {
	// Local says that the reader works in the repository with ralph's commands, because no forge shows the report.
	Local                 bool
	Hints                 Hints
	NeedsHuman, NeedsInfo string // labels
	Rounds                bool   // the next sweep follows up reviews that ask for changes
	Commands              bool   // people can give commands in comments
}

// Hints has the commands of the program that runs the pool, as a person types them, with KEY for an issue's key. Reports
// for readers in the repository name the commands that are not empty. All reports name Verify, whose KEY is a branch or
// commit.
type Hints struct {
	Work, Close, Diff, Merge, MergeEdited, Show, Stop, Doctor, Verify string

	Retest string // what makes the tests of a change run

	// Warning returns a warning's text with the flag or key that helps, such as the one that allows a refused connection;
	// nil: plain text.
	Warning func(sandboxes.Notice) string
}

// warning returns a warning's text with the flag or key that helps.
func (h Hints) warning(n sandboxes.Notice) string {
	if h.Warning == nil {
		return n.Text
	}
	return h.Warning(n)
}

// typed returns the command of a hint for a key, or otherwise if there is no hint.
func typed(hint, key, otherwise string) string {
	if hint == "" {
		return otherwise
	}
	return tracker.Code(strings.ReplaceAll(hint, "KEY", key))
}

// with returns a phrase with the command that helps, or "".
func with(hint, key string) string {
	if hint == "" {
		return ""
	}
	return " with " + typed(hint, key, "")
}

// GitCommand returns a git command to type, with the name of a branch, range or file quoted for a shell.
func GitCommand(command, name string) string { return "git " + command + " " + git.Quote(name) }

// next returns the one command or action that continues from here.
func next(in Input, r journal.Record) string {
	v := r.Verdict
	stays := v.Final || v.Outcome == journal.Succeeded || v.Outcome == journal.Superseded || v.Reason.Code == journal.ReasonClaimLost
	switch {
	case in.Done.Code != "":
		return "nothing here: " + tracker.QuoteLine(Skip(in.Done), line) + "."
	case v.Reason.Code == journal.ReasonUndone:
		closing := ""
		if in.Steps.Local {
			closing = with(in.Steps.Hints.Close, r.Key)
		}
		return "bring back what is missing, if you want it; then close the issue" + closing + "."
	case in.Unfit.Code != "" && !stays: // no sweep continues by itself
		return "nothing" + revive(in.Unfit) + "."
	case v.Reason.Code == journal.ReasonAsked && r.FollowUp == "" && len(r.Settings.Require) > 0: // whoever stopped it may still remove the label
		return fmt.Sprintf("nothing; it was stopped, and the next sweep continues if the issue has the label %s then.",
			tracker.QuoteLine(r.Settings.Require[0], line))
	}
	if in.Steps.Local {
		return nextHere(in.Steps.Hints, r)
	}
	return nextThere(in.Steps, r)
}

// SolveCommands returns the commands by which a person solves the run's conflict with the base, on this branch.
func SolveCommands(r journal.Record, branch string) []string {
	if len(r.Facts.Solve) > 0 {
		return r.Facts.Solve
	}
	return []string{GitCommand("rebase", r.Base) + " " + git.Quote(branch)}
}

func solve(r journal.Record) string {
	var commands []string
	for _, c := range SolveCommands(r, r.Branch) {
		commands = append(commands, tracker.Code(c))
	}
	return strings.Join(commands, " and ")
}

// nextHere returns the next step for a reader in the repository.
func nextHere(h Hints, r journal.Record) string {
	v, key := r.Verdict, r.Key
	again := typed(h.Work, key, "work the issue again")
	switch v.Outcome {
	case journal.Succeeded:
		switch {
		case r.Merges(v):
			return "nothing; it is merged."
		case r.Request.URL != "":
			return reviewOf(r)
		}
		if v.Reason.Code == journal.ReasonEdited {
			h.Merge = h.MergeEdited
		}
		return fmt.Sprintf("review%s, then %s.", with(h.Diff, key), typed(h.Merge, key, "merge the branch"))
	case journal.NoChange:
		return fmt.Sprintf("close the issue%s if you agree; if not, add details to it, then %s.", with(h.Close, key), again)
	case journal.NeedsInfo:
		return fmt.Sprintf("answer in the issue; the next sweep continues with it. At once: %s.", again)
	case journal.PolicyBlocked:
		return fmt.Sprintf("nothing was published; look at %s. Publish it yourself if it is right; if not, take the changes out, then %s.",
			tracker.Code(GitCommand("log -p", r.Base+".."+r.Branch)), again)
	case journal.OverBudget:
		switch v.Reason.Code {
		case journal.ReasonDisk:
			return fmt.Sprintf("check what the run wrote, and free disk space; then %s. The work so far is kept.", again)
		case journal.ReasonCap:
			return fmt.Sprintf("nothing; %s. At once: raise the cap, then %s.", ByItself(r), again)
		}
		return fmt.Sprintf("raise the budget, then %s; the work so far is kept.", again)
	case journal.AgentUnavailable, journal.EnvironmentUnavailable, journal.Interrupted:
		switch {
		case v.Reason.Code == journal.ReasonClaimLost:
			return "nothing here; the ralph that works the issue now reports in its own copy. The work so far is kept."
		case v.Final:
			return fmt.Sprintf("%s. Find out why%s; then %s.", died(r), with(h.Show, key), again)
		case cannotRun(r):
			return fmt.Sprintf("%s At once: %s.", correctChecks, again)
		}
		return fmt.Sprintf("nothing; %s. At once: %s.", ByItself(r), again)
	case journal.Superseded:
		if r.Commits == 0 {
			return "nothing."
		}
		return "nothing; the work so far is kept on the branch."
	}
	switch {
	case v.Final && unstarted(r):
		return fmt.Sprintf("%s. Find out what is broken%s; then %s.", notStarted(r), with(h.Doctor, key), again)
	case v.Final && r.Facts.End == loop.EndUnchanged:
		return fmt.Sprintf("correct the line of the gate that fails, or what it needs on %s, then %s; "+
			"it continues from the commits so far.",
			tracker.Code(r.Base), again)
	case v.Final && v.Reason.Code == journal.ReasonTestsNotRun:
		return fmt.Sprintf("%s, then %s; it continues from the commits so far.", cmp.Or(h.Retest, "make the tests run"), again)
	case v.Final && v.Reason.Code == journal.ReasonConflict:
		return fmt.Sprintf("solve the conflict after %s; then %s and %s.", solve(r),
			tracker.Code(GitCommand("switch", r.Base)), typed(h.Merge, key, "merge the branch"))
	case v.Final && v.Reason.Code == journal.ReasonPublish && r.Settings.Publish == journal.PublishMerge:
		return fmt.Sprintf("fix what prevents publishing; then %s.", typed(h.Merge, key, "merge the branch"))
	case v.Final && v.Reason.Code == journal.ReasonPublish:
		return publishAgain(again)
	case v.Final:
		return fmt.Sprintf("find out why%s, then %s; it continues from the commits so far.", with(h.Show, key), again)
	}
	return fmt.Sprintf("nothing; %s. At once: %s.", ByItself(r), again)
}

// nextThere returns the next step for a reader on a forge: only what can be done there, and ralph's reaction.
func nextThere(s Steps, r journal.Record) string {
	v, again := r.Verdict, retry(s, r)
	if !v.Final && v.Outcome != journal.Succeeded {
		return nextByItself(r)
	}
	switch v.Outcome {
	case journal.Succeeded:
		return nextOfSuccess(s, r)
	case journal.NoChange:
		return fmt.Sprintf("close the issue if you agree. If not, say in a comment what is missing, and %s.", again)
	case journal.NeedsInfo:
		return fmt.Sprintf("answer in a comment, as somebody with write permission: "+
			"the next sweep continues with it. To continue without an answer, "+
			"remove the label %s.", tracker.Code(s.NeedsInfo))
	case journal.PolicyBlocked:
		return fmt.Sprintf("nothing was published. Say in a comment what the agent must not change, "+
			"and %s: ralph starts again from the base, without these commits.", again)
	case journal.OverBudget:
		if v.Reason.Code == journal.ReasonDisk {
			return fmt.Sprintf("free disk space on machine %s; then %s. The work so far is kept.",
				tracker.QuoteLine(r.Host, line), again)
		}
		return fmt.Sprintf("%s to spend the same budget once more; the work so far is kept.", again)
	}
	if v.Reason.Code == journal.ReasonPublish {
		return publishAgain(again)
	}
	if v.Outcome == journal.Interrupted {
		return fmt.Sprintf("%s. Somebody with access to machine %s has to find out why; then %s.",
			died(r), tracker.QuoteLine(r.Host, line), again)
	}
	if v.Reason.Code == journal.ReasonConflict && r.Facts.Hopeless {
		return fmt.Sprintf("somebody with access to machine %s has to solve the conflict after %s, and to merge the branch.",
			tracker.QuoteLine(r.Host, line), solve(r))
	}
	if unstarted(r) {
		return fmt.Sprintf("%s. Somebody with access to machine %s has to fix it; then %s.",
			notStarted(r), tracker.QuoteLine(r.Host, line), again)
	}
	if r.Facts.End == loop.EndUnchanged {
		return fmt.Sprintf("correct the line of the gate that fails, or what it needs on %s; then %s. The work so far is kept.",
			tracker.Code(r.Base), again)
	}
	return fmt.Sprintf("%s to try again from the commits so far. A comment of somebody with write permission reaches the agent.",
		again)
}

func publishAgain(again string) string {
	return fmt.Sprintf("fix what prevents publishing; then %s. The agent does not run again for it, unless the issue has changed.", again)
}

// unstarted reports whether the run failed before its agent was started.
func unstarted(r journal.Record) bool {
	switch r.Facts.End {
	case loop.EndSetup, loop.EndPrompt, loop.EndSandbox, loop.EndImport:
		return len(r.Facts.Iterations) == 0
	}
	return r.Facts.Open != nil
}

// cannotRun reports whether setup or gate cannot run on the base, so that no run can begin.
func cannotRun(r journal.Record) bool {
	return r.Facts.Open != nil && r.Facts.Open.Kind == journal.FaultBase
}

const correctChecks = "correct the setup or the gate, or give it what it lacks; the next sweep tries again."

func notStarted(r journal.Record) string {
	return fmt.Sprintf("the agent could not be started; %s in a row", plural.Of(r.Facts.Failures+1, "failure"))
}

func died(r journal.Record) string {
	return fmt.Sprintf("the run was cut off, at the end of %s in a row", plural.Of(r.Facts.Failures+1, "failure"))
}

// reviewOf returns the next step for the request.
func reviewOf(r journal.Record) string {
	if r.Request.Merging {
		return "nothing; the forge merges " + r.Request.URL + " once its checks have passed."
	}
	return "review " + r.Request.URL + "."
}

// nextOfSuccess returns the next step after a success.
func nextOfSuccess(s Steps, r journal.Record) string {
	switch {
	case r.Merges(r.Verdict):
		return "nothing; it is merged."
	case r.Request.URL == "" && r.Published == "":
		return fmt.Sprintf("the commits are on machine %s only: somebody with access to it has to review and merge them.",
			tracker.QuoteLine(r.Host, line))
	case r.Request.URL == "":
		return fmt.Sprintf("review the branch %s, and merge it or open a request for it.", tracker.Code(r.Branch))
	}
	text := reviewOf(r) + reviewed(s)
	if afresh := pickUp(r, "add the label %s to this issue"); afresh != "" {
		text += fmt.Sprintf(" To start again from the base, close the request and %s.", afresh)
	}
	return text
}

// retry says how a person has the issue tried again. Opening a request has removed the pick-up label.
func retry(s Steps, r journal.Record) string {
	label := ""
	if r.FollowUp != "" {
		label = pickUp(r, " and add the label %s again")
	}
	return fmt.Sprintf("remove the label %s%s%s", tracker.Code(s.NeedsHuman), label, orComment(s, tracker.Retry))
}

// pickUp formats a phrase with the pick-up label; "" if the run has none.
func pickUp(r journal.Record, phrase string) string {
	if len(r.Settings.Require) == 0 {
		return ""
	}
	return fmt.Sprintf(phrase, tracker.Code(r.Settings.Require[0]))
}

// stop says how a person ends a run in progress.
func stop(s Steps, r journal.Record) string {
	switch {
	case s.Local && s.Hints.Stop != "":
		return fmt.Sprintf("Stop it%s.", with(s.Hints.Stop, r.Key))
	case r.FollowUp == "" && len(r.Settings.Require) > 0:
		return pickUp(r, "To stop it, remove the label %s") + orComment(s, tracker.Stop) + "."
	}
	return "To stop it, close the issue" + orComment(s, tracker.Stop) + "."
}

// Explain answers a person who asks how an issue's last run ended and what comes next. Of a run of another host only the
// tally is known, and in.Record is empty. holder is the machine of a run in progress, or "".
func Explain(in Input, t journal.Tally, holder string) string {
	var b strings.Builder
	if holder != "" {
		fmt.Fprintf(&b, "A run is active on machine %s.\n\n", tracker.QuoteLine(holder, line))
	}
	switch r := Redacted(in.Record, in.Secrets); {
	case t.Run == "":
		b.WriteString("No run of this issue has ended yet.\n\n")
	case r.ID != t.Run:
		fmt.Fprintf(&b, "The last run, on machine %s, ended %s: **%s**. Its report says what comes next.\n\n",
			tracker.QuoteLine(t.Host, line), stamp(t.At), t.Outcome)
	default:
		fmt.Fprintf(&b, "The last run, on machine %s, ended %s: **%s**", tracker.QuoteLine(r.Host, line), stamp(t.At), r.Verdict.Outcome)
		if why := Reason(r.Verdict.Reason); why != "" {
			fmt.Fprintf(&b, ", %s", tracker.QuoteLine(why, line))
		}
		fmt.Fprintf(&b, ".\n\nNext: %s\n\n", next(in, r))
	}
	if t.Asked != nil && holder == "" {
		fmt.Fprintf(&b, "Another run was asked for by %s; it starts as soon as a worker is free.\n\n", tracker.QuoteLine(t.Asked.By, line))
	}
	return strings.TrimSpace(b.String())
}

// Asked describes a request that was not made on the tracker.
func Asked(c tracker.Command, secrets *redact.Secrets) string {
	return "Another run was asked for by " + tracker.QuoteLine(c.By, line) + ":\n\n" + tracker.Quote(secrets.Mask(c.Text), 8<<10)
}

// Unknown answers a command that does not exist.
func Unknown(verb tracker.Verb) string {
	var known []string
	for _, v := range tracker.Verbs() {
		known = append(known, fmt.Sprintf("`/ralph %s`", v))
	}
	said := ""
	if verb != "" {
		said = fmt.Sprintf("There is no command %s. ", tracker.QuoteLine(string(verb), line))
	}
	return fmt.Sprintf("%sThe commands are %s. After `fix` write what the agent has to do.", said, strings.Join(known, ", "))
}

// orComment adds the equivalent comment command, if the tracker supports commands.
func orComment(s Steps, v tracker.Verb) string {
	if !s.Commands {
		return ""
	}
	return fmt.Sprintf(" (or comment `/ralph %s`)", v)
}

// reviewed says how ralph reacts to reviews of a request.
func reviewed(s Steps) string {
	text := ""
	if s.Rounds {
		text = " If a review asks for changes, the next sweep makes them."
	}
	if s.Commands {
		text += " A comment `/ralph fix` makes ralph work on all review comments without an answer."
	}
	return text
}
