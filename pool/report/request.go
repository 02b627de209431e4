package report

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree"
)

// Request is the data of a request's body.
type Request struct {
	Input
	Commits  []worktree.Commit // the agent's commits, oldest first
	Template string            // the repository's own template, from the base
}

// RequestKeys returns the keys that a request's template may use.
func RequestKeys() []string {
	return []string{"issue_key", "issue_id", "issue_title", "issue_url", "branch", "base", "report", "template"}
}

// RequestBody renders the template of a request.
func RequestBody(ctx context.Context, template prompt.Prompt, in Request) (string, error) {
	r := in.Record
	template.Builtin = map[string]string{
		"issue_key": r.Key, "issue_id": issueID(in.Input), "issue_title": tracker.QuoteLine(in.Issue.Title, line),
		"issue_url": r.URL, "branch": r.Branch, "base": r.Base, "report": change(in), "template": in.Template,
	}
	body, err := template.Render(ctx, nil, nil)
	return strings.TrimSpace(body) + "\n", err
}

// change describes the change for a reviewer: outcome, commits, files, checks and next step.
func change(in Request) string {
	r := Redacted(in.Record, in.Secrets)
	f, v := r.Facts, r.Verdict
	var b strings.Builder
	if v.Draft() {
		fmt.Fprintf(&b, "This is a draft: %s, %s.\n\n", v.Outcome, tracker.QuoteLine(Reason(v.Reason), line))
	}
	edited(&b, r)
	message(&b, in.Input, f, "What was done and why, in the agent's words:")
	watch(&b, f.Watch)
	commits(&b, in)
	files(&b, in, r.Changed)
	gate(&b, f, in.GateOff)
	review(&b, f.Review)
	fmt.Fprintf(&b, "Made by %s in sandbox %s", agent(r), r.Sandbox)
	if r.Settings.Weaker != "" {
		fmt.Fprintf(&b, " (%s)", r.Settings.Weaker)
	}
	fmt.Fprintf(&b, ": %s, %s", plural.Of(len(f.Iterations), "iteration"), r.DurationUntil(in.Now).Round(time.Second))
	if f.Usage != (agents.Usage{}) {
		fmt.Fprintf(&b, "; %s", ledger.Spend{Usage: f.Usage}.Text())
	}
	fmt.Fprintf(&b, "; run `%s`.\n\n", r.ID)
	if text := reviewSpent(f.ReviewSpend); text != "" {
		fmt.Fprintf(&b, "%s.\n\n", strings.TrimPrefix(text, "\n- "))
	}
	proof(&b, in.Steps.Hints, r)
	if r.RestartReason != "" {
		fmt.Fprintf(&b, "Started again from the base: %s.\n\n", tracker.QuoteLine(r.RestartReason, line))
	}
	remarks(&b, in.Input, r)
	fmt.Fprintf(&b, "To go on: %s", goOn(in, r))
	return b.String()
}

// commits lists the newest commits.
func commits(b *strings.Builder, in Request) {
	list := in.Commits
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(b, "%s on %s:\n\n", title(plural.Of(len(list), "commit")), tracker.Code(in.Record.Base))
	if more := len(list) - filesShown; more > 0 {
		fmt.Fprintf(b, "- %d earlier\n", more)
		list = list[more:]
	}
	for _, c := range list {
		fmt.Fprintf(b, "- `%.12s` %s\n", c.SHA, tracker.QuoteLine(in.Secrets.Clean(c.Subject), line))
	}
	b.WriteString("\n")
}

// files lists the changed files with their line counts.
func files(b *strings.Builder, in Request, c journal.Changed) {
	if c.Files == 0 {
		return
	}
	fmt.Fprintf(b, "%s changed, %s added, %s removed", title(plural.Of(c.Files, "file")), plural.Of(c.Insertions, "line"), plural.Of(c.Deletions, "line"))
	if len(c.List) == 0 {
		b.WriteString(".\n\n")
		return
	}
	b.WriteString(":\n\n")
	var lines []string
	for _, f := range c.List {
		lines = append(lines, fmt.Sprintf("%s +%d −%d", tracker.QuoteLine(in.Secrets.Clean(f.Path), line), f.Insertions, f.Deletions))
	}
	bullets(b, lines, c.Files-len(lines))
}

// goOn returns the next step of a request.
func goOn(in Request, r journal.Record) string {
	if r.Verdict.Outcome != journal.Succeeded {
		next := nextThere(in.Steps, r)
		return "on the issue, " + strings.TrimPrefix(next, "nothing; ")
	}
	text := "merge this request if it is right; that closes the issue."
	text += reviewed(in.Steps)
	if afresh := pickUp(r, "add the label %s to the issue"); afresh != "" {
		text += fmt.Sprintf(" To start again from the base, close this request and %s.", afresh)
	}
	return text
}

// title puts the first letter in upper case.
func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// RequestTitle returns the issue's title as plain text, or a substitute if no character of it is visible.
func RequestTitle(in Input, limit int) string {
	if title := tracker.Plain(in.Issue.Title, limit); title != "" {
		return title
	}
	return "Issue " + issueID(in)
}

// issueID returns the tracker's ID of the issue. After a crash only the key is certain.
func issueID(in Input) string {
	if in.Issue.ID != "" {
		return in.Issue.ID
	}
	return in.Record.Key
}
