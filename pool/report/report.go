// Package report writes the texts that people read on an issue and in a request, from typed data.
//
// It quotes all text of agents, issues, commands and errors as data, so that a tracker can only act on text of these
// templates. Its caller is package pool/run; the command also uses [Reason] for its output. All functions are pure.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/note"
)

// Limits of hostile text in a report, in bytes.
const (
	words = 2000
	tail  = 1200
	line  = 300
)

// Input is the data of a report.
type Input struct {
	Record    journal.Record
	Earlier   []journal.Record // runs of the issue that ended before this one, oldest first
	Issue     tracker.Issue    // as it was frozen
	Signals   []string         // texts in agent messages that are only for ralph
	Invisible int              // number of characters removed from the issue's text before the agent saw it
	Unfit     tracker.Unfit    // why the issue no longer qualifies, although that has not ended the run
	Done      journal.Skip     // another clone has finished the issue since
	Steps     Steps
	GateOff   bool // the gate only ran in the agent's worktree
	Secrets   *redact.Secrets
	Now       time.Time
}

func agent(r journal.Record) string {
	var names []string
	for _, c := range workers(r) {
		name := c.Agent
		if c.Model != "" {
			name = fmt.Sprintf("%s (%s)", c.Agent, tracker.QuoteLine(c.Model, line))
		}
		names = append(names, name)
	}
	return cmp.Or(strings.Join(names, ", then "), "no agent")
}

// workers returns the agents of the run, each once, in the order of their start.
func workers(r journal.Record) (list []agents.Choice) {
	for _, it := range r.Facts.Iterations {
		if c := it.Choice(); it.Agent != "" && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	if len(list) == 0 && r.Agent != "" {
		return []agents.Choice{{Agent: r.Agent, Model: r.Model}}
	}
	return list
}

// Workers returns the names of the run's agents and models, each once, in the order of their start.
func Workers(r journal.Record) (names []string) {
	for _, c := range workers(r) {
		names = append(names, strings.TrimSpace(c.Agent+" "+c.Model))
	}
	return names
}

// Final writes the report of a run that has ended.
func Final(in Input) string {
	r := Redacted(in.Record, in.Secrets)
	f, v := r.Facts, r.Verdict
	var b strings.Builder
	fmt.Fprintf(&b, "**ralph: %s**", v.Outcome)
	if why := Reason(v.Reason); why != "" {
		limit := line
		if v.Reason.Code == journal.ReasonPublish || v.Reason.Code == journal.ReasonUndone || cannotRun(r) { // such reasons are long, and nothing else helps
			limit = words
		}
		fmt.Fprintf(&b, ": %s", tracker.QuoteLine(why, limit))
	}
	b.WriteString("\n\n")
	edited(&b, r)
	watch(&b, f.Watch)
	if f.Question != "" {
		fmt.Fprintf(&b, "The agent asks:\n\n%s\n\n", tracker.Quote(f.Question, words))
	}
	facts(&b, in, r)
	gate(&b, f, in.GateOff)
	retest(&b, f.Retest)
	review(&b, f.Review)
	message(&b, in, f, "The agent's last words:")
	proof(&b, in.Steps.Hints, r)
	remarks(&b, in, r)
	fmt.Fprintf(&b, "Next: %s\n", next(in, r))
	history(&b, in)
	return b.String()
}

// edited warns that the issue may ask for something else by now.
func edited(b *strings.Builder, r journal.Record) {
	if !r.Facts.Edited {
		return
	}
	b.WriteString("The issue has changed since this run began (its text, or a comment of somebody who may direct ralph): " +
		"the agent has not seen this.")
	if r.Commits > 0 {
		b.WriteString(" Check whether the work still fits.")
	}
	b.WriteString("\n\n")
}

// message quotes the agent's last message without the signals to ralph.
func message(b *strings.Builder, in Input, f journal.Facts, intro string) {
	text := f.Message
	for _, signal := range in.Signals {
		text = strings.ReplaceAll(text, signal, "")
	}
	if text = tracker.Quote(strings.TrimSpace(text), words); text != "" {
		fmt.Fprintf(b, "%s\n\n%s\n\n", intro, text)
	}
}

// proof says where the proof of the commits is.
func proof(b *strings.Builder, h Hints, r journal.Record) {
	p, what := r.Proof, r.Branch
	if p.Tip == "" || p.Tip != r.Tip {
		return
	}
	if r.Settings.Publish == journal.PublishMerge { // the branch will be deleted
		what = p.Tip[:12]
	}
	check := ""
	if h.Verify != "" {
		check = "; check it" + with(h.Verify, what)
	}
	fmt.Fprintf(b, "Proof: the note of `%.12s` in `%s` says how the commit was made, signed by `%s`%s.\n\n", p.Tip, note.Ref, p.Key, check)
}

// remarks writes warnings and other remarks.
func remarks(b *strings.Builder, in Input, r journal.Record) {
	for _, w := range r.Warnings {
		text := w.Text
		if in.Steps.Local {
			text = in.Steps.Hints.warning(w)
		}
		fmt.Fprintf(b, "Warning: %s\n\n", tracker.QuoteLine(text, line))
	}
	if who := untrusted(in.Issue); who != "" {
		fmt.Fprintf(b, "Not in the prompt: comments of people who may not direct ralph (%s).\n\n", tracker.QuoteLine(who, line))
	}
	if in.Invisible > 0 {
		fmt.Fprintf(b, "Warning: %d invisible characters were removed from the issue's text before the agent saw it.\n\n", in.Invisible)
	}
}

// facts lists facts about the run. It names a branch that is on no remote only to readers who can see it, and none without work.
func facts(b *strings.Builder, in Input, r journal.Record) {
	pushed := r.Published != "" || r.Request.URL != ""
	if pushed || in.Steps.Local && (r.Commits > 0 || r.WIP != "") {
		fmt.Fprintf(b, "- Branch: %s, %s on %s", tracker.Code(r.Branch), plural.Of(r.Commits, "commit"), tracker.Code(r.Base))
	} else {
		fmt.Fprintf(b, "- Work: %s on %s", plural.Of(r.Commits, "commit"), tracker.Code(r.Base))
		if r.Commits > 0 {
			fmt.Fprintf(b, ", kept on machine %s and not pushed", tracker.QuoteLine(r.Host, line))
		}
	}
	if r.Tip != "" && r.Commits > 0 {
		fmt.Fprintf(b, ", tip `%.12s`", r.Tip)
	}
	switch {
	case r.Request.URL != "" && r.Request.Draft:
		fmt.Fprintf(b, "; draft: %s", r.Request.URL)
	case r.Request.Merging:
		fmt.Fprintf(b, "; merged by the forge once its checks have passed: %s", r.Request.URL)
	case r.Request.URL != "":
		fmt.Fprintf(b, "; review: %s", r.Request.URL)
	case r.Published != "":
		fmt.Fprintf(b, "; %s", tracker.QuoteLine(r.Published, line))
	}
	b.WriteString("\n")
	if c := r.Changed; c.Files > 0 {
		fmt.Fprintf(b, "- Changes: %s, %s added, %s removed\n", plural.Of(c.Files, "file"), plural.Of(c.Insertions, "line"), plural.Of(c.Deletions, "line"))
	}
	if saved := cmp.Or(r.WIP, r.Saved.Commit); saved != "" {
		whose := ""
		if r.WIP == "" {
			whose = " of an earlier run"
			if r.Saved.Run != "" {
				whose = " of run " + tracker.Code(r.Saved.Run)
			}
		}
		fmt.Fprintf(b, "- Uncommitted changes%s: saved as `%.12s` (`refs/ralph/wip/%s`)", whose, saved, r.Key)
		if !in.Steps.Local {
			fmt.Fprintf(b, " on machine %s", tracker.QuoteLine(r.Host, line))
		}
		b.WriteString("\n")
	}
	effort(b, in, r)
}

// effort lists what the run took, and its identity.
func effort(b *strings.Builder, in Input, r journal.Record) {
	took := r.DurationUntil(in.Now).Round(time.Second)
	if r.Settings.Attended {
		fmt.Fprintf(b, "- A person asked for it: no agent worked, %s", took)
	} else {
		attempt := fmt.Sprintf("Attempt %d of %d", r.Attempt, r.Settings.Limits.MaxAttempts)
		if r.Verdict.Outcome.Unavailable() {
			attempt = "Not an attempt"
		}
		fmt.Fprintf(b, "- %s, %s, %s", attempt, plural.Of(len(r.Facts.Iterations), "iteration"), took)
	}
	if u := r.Facts.Usage; u != (agents.Usage{}) {
		fmt.Fprintf(b, "\n- Spent: %s", ledger.Spend{Usage: u}.Text())
	}
	b.WriteString(reviewSpent(r.Facts.ReviewSpend))
	if u := r.Facts.Unmetered(); u != (agents.Usage{}) {
		fmt.Fprintf(b, "\n- Only reported by the agent, and not seen in the answers of its service: %s", ledger.Spend{Usage: u}.Text())
	}
	if !r.Settings.Attended {
		fmt.Fprintf(b, "\n- Agent: %s, sandbox: %s", agent(r), r.Sandbox)
	} else {
		fmt.Fprintf(b, "\n- Sandbox: %s", r.Sandbox)
	}
	if r.Settings.Weaker != "" {
		fmt.Fprintf(b, " (%s)", r.Settings.Weaker)
	}
	if s := ledger.Compare(r.Facts.Iterations).String(); s != "" {
		fmt.Fprintf(b, "\n- Sessions: %s", s)
	}
	fmt.Fprintf(b, "\n- Run: `%s`", r.ID)
	if r.RestartReason != "" {
		fmt.Fprintf(b, ", started again from the base: %s (`%.12s` is kept under `refs/ralph/old/%s`)", tracker.QuoteLine(r.RestartReason, line),
			r.ExcludedCommit, r.Key)
	}
	if r.After != "" && !r.Settings.Attended {
		fmt.Fprintf(b, ", started again: run `%s` ended as %s", r.After, r.AfterOutcome)
	}
	if r.FollowUp != "" {
		fmt.Fprintf(b, ", follow-up: %s", r.FollowUp)
	}
	b.WriteString("\n\n")
}

// reviewSpent returns a line with the usage of the reviews.
func reviewSpent(r journal.ReviewSpend) string {
	if r.Usage == (agents.Usage{}) {
		return ""
	}
	return "\n- Of this for the review: " + ledger.Spend{Usage: r.Usage}.Text()
}

// gate writes the results of the checks: on a clean checkout of the tip if they ran there, otherwise in the worktree.
func gate(b *strings.Builder, f journal.Facts, off bool) {
	checks, where := f.Gate, "in the agent's worktree"
	switch {
	case f.Verify != nil:
		checks, where = f.Verify.Checks, "on a clean checkout of the tip"
	case !f.GateRan:
		return
	case len(checks) == 0:
		b.WriteString("Gate: none is configured; nothing has checked the agent's work.\n\n")
		return
	case off:
		where += " only; it did not run on a clean checkout, nor with a failing test"
	}
	if v := f.Baseline; v != nil && !v.Passed() {
		fmt.Fprintf(b, "Before the run, %s failed on %s.\n\n", tracker.QuoteLine(v.Checks[len(v.Checks)-1].Command, line), tracker.Code(v.Base))
	}
	fmt.Fprintf(b, "Gate, %s:\n\n", where)
	for _, c := range checks {
		how := c.Failure()
		if c.Passed() {
			how = "passed"
		}
		fmt.Fprintf(b, "- %s %s in %s\n", tracker.QuoteLine(c.Command, line), how, c.Duration.Round(time.Millisecond))
		if !c.Passed() && c.Tail != "" {
			fmt.Fprintf(b, "\n%s\n\n", tracker.Quote(LastBytes(c.Tail, tail), tail))
		}
	}
	b.WriteString("\n")
}

// untrusted names the authors of comments that were left out of the prompt, with the number of comments.
func untrusted(issue tracker.Issue) string {
	var order []string
	n := map[string]int{}
	for _, c := range issue.Comments {
		if c.Trusted {
			continue
		}
		if n[c.Author]++; n[c.Author] == 1 {
			order = append(order, c.Author)
		}
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%s: %d", name, n[name])
	}
	return strings.Join(order, ", ")
}

// Fenced returns foreign text as data, between fences that it cannot close; "" for empty text.
func Fenced(text string) string {
	if text, _ = tracker.Clean(strings.TrimSpace(text)); text == "" {
		return ""
	}
	return "\n\n" + prompt.Fence(text)
}

// LastBytes returns the end of a text, at most n bytes of valid UTF-8.
func LastBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[len(s)-n:], "")
}
