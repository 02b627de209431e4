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
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
)

// WithDetail appends a detail, unless it is empty.
func WithDetail(text, more string) string {
	if more == "" {
		return text
	}
	return text + ": " + more
}

// Attempt numbers an attempt after the first; for the first it returns "".
func Attempt(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("(attempt %d) ", n)
}

// OutcomeOf returns the outcome for display. An unfinished run has none before its commits are verified, or imported after a
// failure of the machine or the engine.
func OutcomeOf(r journal.Record) string {
	if r.Verdict.Outcome == "" && r.Facts.Starved && r.Tip == "" {
		return string(journal.EnvironmentUnavailable) + ", not imported"
	}
	return cmp.Or(string(r.Verdict.Outcome), "not verified yet")
}

// CheckText returns the command of a check, and how it ended.
func CheckText(c loop.Check) string {
	if c.Passed() {
		return c.Command + ": passed"
	}
	return c.Command + ": " + c.Failure()
}

// ReasonOf returns the reason of an event, or "".
func ReasonOf(e journal.Event) string {
	if e.Reason == nil {
		return ""
	}
	return report.Reason(*e.Reason)
}

// SkipText says why the event's issue is not worked; without a skip it returns the event's text.
func SkipText(e journal.Event) string {
	if e.Skip == nil {
		return e.Text
	}
	return hint.SkipReason(e.Key, *e.Skip)
}

// LogText formats an event for a log, and reports whether it is the run's last one.
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
			text = fmt.Sprintf("%s: %s\n%s", e.Check.Command, e.Check.Ending(), e.Check.Tail)
		}
	case journal.EventEnded:
		text, ended = WithDetail(string(e.Outcome), ReasonOf(e)), true
	case journal.EventWarning:
		text = hint.Raising(sandboxes.Notice{Text: text, Subject: e.Subject})
	case journal.EventSkipped, journal.EventProblem:
		text = SkipText(e)
	}
	if e.Source != "" {
		kind = e.Source
	}
	return strings.TrimRight(fmt.Sprintf("%-10s  %s", screen.CleanLine(kind), screen.Clean(text)), " \n"), ended
}

// PrintOpen prints a line if issues wait because of max-open-requests.
func PrintOpen(a *compose.App, left []backlog.Skipped) {
	if n := slices.IndexFunc(left, func(s backlog.Skipped) bool { return s.Skip.Code == journal.SkipOpen }); n >= 0 {
		a.UI.Printf("No further issue begins: %s requests or branches are open or expected (max-open-requests).\n", left[n].Skip.Detail)
	}
}

// SkipData is an issue that is not worked, as JSON.
type SkipData struct {
	Issue  string       `json:"issue"`
	Title  string       `json:"title"`
	Reason string       `json:"reason"`
	Skip   journal.Skip `json:"skip"`
}

// Skips converts skipped issues for JSON.
func Skips(list []backlog.Skipped) []SkipData {
	out := []SkipData{}
	for _, s := range list {
		out = append(out, SkipData{Issue: s.Issue.Key, Title: s.Issue.Title, Reason: reason(s), Skip: s.Skip})
	}
	return out
}

// WhyNot says why an issue waits or is skipped, with the names of issues for people.
func WhyNot(s backlog.Skipped, name func(key string) string) string {
	if s.Skip.WaitsFor != "" && s.Skip.Code != journal.SkipUnfit { // there it is for a command
		s.Skip.WaitsFor = name(s.Skip.WaitsFor)
	}
	return reason(s)
}

// reason is WhyNot with keys in place of names.
func reason(s backlog.Skipped) string { return cmp.Or(Sample(s), hint.SkipReason(s.Issue.Key, s.Skip)) }

// Sample describes the sample issue that `ralph init` writes; "" for other issues.
func Sample(s backlog.Skipped) string {
	if s.Issue.Title == scaffold.SampleTitle && s.Skip.Unfit.Code == tracker.UnfitLacks {
		return "the sample of `ralph init`; write an issue of yours with `ralph new 'TITLE'`"
	}
	return ""
}

// Ungated reports a success without a gate: only the agent says that it works.
func Ungated(r journal.Record) bool {
	return r.Verdict.Outcome == journal.Succeeded && len(r.Settings.Checks.Gate) == 0
}
