package look

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// WithDetail is a text with more behind it, where there is more.
func WithDetail(text, more string) string {
	if more == "" {
		return text
	}
	return text + ": " + more
}

// Attempt says of a run that it is not the first; empty: it is.
func Attempt(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("(attempt %d) ", n)
}

// OutcomeOf is the outcome in words. A run has none while its commits are still to be verified, or to be imported because the machine
// or its engine failed.
func OutcomeOf(r journal.Record) string {
	if r.Verdict.Outcome == "" && r.Facts.Starved && r.Tip == "" {
		return string(journal.EnvironmentUnavailable) + ", not imported"
	}
	return cmp.Or(string(r.Verdict.Outcome), "not verified yet")
}

// ReasonOf is why a run ended as it did; empty where the event does not say.
func ReasonOf(e journal.Event) string {
	if e.Reason == nil {
		return ""
	}
	return report.Reason(*e.Reason)
}

// SkipText is why the issue of an event is not worked, or what else the event says.
func SkipText(e journal.Event) string {
	if e.Skip == nil {
		return e.Text
	}
	return hint.SkipReason(e.Key, *e.Skip)
}

// LogText is an event as a log has it; ended says that it is the run's last.
func LogText(e journal.Event) (line string, ended bool) {
	kind, text := string(e.Kind), e.Text
	switch e.Kind {
	case journal.EventStage:
		text = string(e.Stage)
	case journal.EventStarted:
		if text = Attempt(e.Attempt) + e.Title; e.Branch != "" {
			text += " on " + e.Branch
		}
	case journal.EventCommits:
		text = screen.Plural(e.Commits, "new commit")
	case journal.EventIteration:
		text = fmt.Sprint(e.Iteration)
	case journal.EventUsage:
		took := screen.Age(time.Duration(e.Elapsed * float64(time.Second)))
		kind, text = string(journal.EventIteration), WithDetail(fmt.Sprintf("%d ended after %s", e.Iteration, took), e.Text)
		switch {
		case e.Usage == nil:
		case *e.Usage == (agents.Usage{}):
			text += "; the agent reported no usage"
		default:
			text += "; " + ledger.Spend{Usage: *e.Usage}.Text()
		}
	case journal.EventGate, journal.EventSetup, journal.EventAfter:
		if e.Check != nil {
			text = fmt.Sprintf("%s: exit status %d\n%s", e.Check.Command, e.Check.ExitCode, e.Check.Tail)
		}
	case journal.EventEnded:
		text, ended = WithDetail(string(e.Outcome), ReasonOf(e)), true
	case journal.EventWarning:
		text = hint.Raising(sandboxes.Notice{Text: text, About: e.About})
	case journal.EventSkipped, journal.EventProblem:
		text = SkipText(e)
	}
	if e.Source != "" {
		kind = e.Source
	}
	return strings.TrimRight(fmt.Sprintf("%-10s  %s", screen.CleanLine(kind), screen.Clean(text)), " \n"), ended
}

// PrintOpen says once that issues wait because so many requests are open.
func PrintOpen(a *compose.App, left []backlog.Skipped) {
	if n := slices.IndexFunc(left, func(s backlog.Skipped) bool { return s.Skip.Code == journal.SkipOpen }); n >= 0 {
		a.UI.Printf("No further issue begins: %s requests or branches are open, or on the way (max-open-requests).\n", left[n].Skip.Detail)
	}
}

// SkipData is an issue that is not worked, in JSON.
type SkipData struct {
	Issue  string       `json:"issue"`
	Title  string       `json:"title"`
	Reason string       `json:"reason"`
	Skip   journal.Skip `json:"skip"`
}

// Skips are issues that are not worked, as JSON.
func Skips(list []backlog.Skipped) []SkipData {
	out := []SkipData{}
	for _, s := range list {
		out = append(out, SkipData{Issue: s.Issue.Key, Title: s.Issue.Title, Reason: reason(s), Skip: s.Skip})
	}
	return out
}

// WhyNot says why an issue waits or is left out.
func WhyNot(s backlog.Skipped, name func(key string) string) string {
	if s.Skip.For != "" {
		s.Skip.For = name(s.Skip.For)
	}
	return reason(s)
}

// reason is WhyNot with names as they are.
func reason(s backlog.Skipped) string {
	if s.Issue.Title == scaffold.SampleTitle && s.Skip.Unfit.Code == tracker.UnfitLacks {
		return "the sample of `ralph init`; write an issue of yours with `ralph new 'TITLE'`"
	}
	return hint.SkipReason(s.Issue.Key, s.Skip)
}

// Ungated reports that only the agent's word stands behind a success.
func Ungated(r journal.Record) bool {
	return r.Verdict.Outcome == journal.Succeeded && len(r.Settings.Checks.Gate) == 0
}
