package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/tracker"
)

// earlierShown is the number of earlier runs that a report lists.
const earlierShown = 5

// Progress says that the issue is being worked, and in which phase the run is. at is its latest event about a stage or an
// iteration.
func Progress(in *Input, at journal.Event) string {
	r := in.Record
	var b strings.Builder
	fmt.Fprintf(&b, "**ralph: working** since %s on machine %s: %s.\n\n", stamp(r.Started), tracker.QuoteLine(r.Host, line), phase(at))
	fmt.Fprintf(&b, "- Attempt %d of %d", r.Attempt, r.Settings.Limits.MaxAttempts)
	if r.FollowUp != "" {
		fmt.Fprintf(&b, ", follow-up: %s", r.FollowUp)
	}
	fmt.Fprintf(&b, "\n- Agent: %s, sandbox: %s\n- Run: `%s`\n\n", agent(r), r.Sandbox, r.ID)
	fmt.Fprintf(&b, "%s\n", stop(in.Steps, r))
	history(&b, *in)
	return b.String()
}

// phase describes the phase of a run.
func phase(at journal.Event) string {
	switch {
	case at.Kind == journal.EventIteration:
		return fmt.Sprintf("the agent is working, iteration %d", at.Iteration)
	case at.Stage == journal.StageBaseline:
		return "the gate runs on the base"
	case at.Stage == journal.StageWork:
		return "the agent is working"
	case at.Stage == journal.StageVerify:
		return "the commits are being verified"
	case at.Stage == journal.StagePublish:
		return "the commits are being published"
	}
	return "it is being prepared"
}

// Waiting says that the commits are complete and why they could not be published. The next sweep tries again.
func Waiting(in Input, why error) string {
	r := Redacted(in.Record, in.Secrets)
	var b strings.Builder
	fmt.Fprintf(&b, "**ralph: waiting** to publish: %s\n\n", tracker.QuoteLine(in.Secrets.Clean(why.Error()), words))
	facts(&b, in, r)
	b.WriteString("Next: the next sweep tries again to publish, without the agent.\n")
	history(&b, in)
	return b.String()
}

// HandOver says that a request needs a person after this number of follow-up runs, and why. The record is the last run's.
func HandOver(in Input, f tracker.FollowUp, rounds int) string {
	why := "it still needs work"
	switch f.Reason {
	case tracker.ChecksFailed:
		why = "its required checks still fail"
	case tracker.Conflict:
		why = "it still conflicts with its base"
	case tracker.ChangesRequested:
		why = "a review still asks for changes"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**ralph: needs a person**: %s has had %s, and %s.\n\n", f.Request.URL, plural.Of(rounds, "follow-up run"), why)
	fmt.Fprintf(&b, "Next: finish the request yourself. To let ralph continue, %s. "+
		"To start again from the base, close the request first.\n",
		"remove the label "+tracker.Code(in.Steps.NeedsHuman)+pickUp(in.Record, " and add the label %s again"))
	history(&b, in)
	return b.String()
}

// history writes a folded list of the earlier runs. It leaves out runs that ended as unavailable.
func history(b *strings.Builder, in Input) {
	var lines []string
	for _, e := range in.Earlier {
		r := Redacted(e, in.Secrets)
		if r.Ended.IsZero() || r.Verdict.Outcome.Unavailable() {
			continue
		}
		text := fmt.Sprintf("- %s: %s", stamp(r.Ended), r.Verdict.Outcome)
		if why := Reason(r.Verdict.Reason); why != "" {
			text += ", " + tracker.QuoteLine(why, line/2)
		}
		did := []string{plural.Of(r.Commits, "commit")}
		if n := len(r.Facts.Iterations); n > 0 {
			did = append(did, plural.Of(n, "iteration"), r.DurationUntil(r.Ended).Round(time.Second).String())
		}
		if u := r.Facts.Usage; u != (agents.Usage{}) {
			did = append(did, ledger.Spend{Usage: u}.Text())
		}
		lines = append(lines, fmt.Sprintf("%s (%s, run `%s`)", text, strings.Join(did, ", "), r.ID))
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "\n<details><summary>Earlier: %s</summary>\n\n", plural.Of(len(lines), "run"))
	lines = lines[max(0, len(lines)-earlierShown):]
	fmt.Fprintf(b, "%s\n\n</details>\n", strings.Join(lines, "\n"))
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
